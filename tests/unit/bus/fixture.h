/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-dbus-test.h"
#include "bj-gate.h"

G_BEGIN_DECLS

#define BUS_PATH "/test"

/* A bus of its own with a server behind a gate and a client. */
typedef struct
{
  GTestDBus *bus;
  GDBusConnection *server;
  GDBusConnection *client;
  BjGate *gate;
  BjDBusTest *skeleton; /* not exported yet */
} BusFixture;

void bus_set_up (BusFixture *self, BjAuth auth);
void bus_tear_down (BusFixture *self);
/* At BUS_PATH. */
void bus_export (BusFixture *self, gboolean guarded);

G_END_DECLS
