/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct
{
  uint32_t state[8];
  uint64_t length; /* bytes */
  uint8_t block[64];
} BjSha256;

void bj_sha256_init (BjSha256 *self);
void bj_sha256_update (BjSha256 *self, const uint8_t *data, size_t length);
void bj_sha256_finish (BjSha256 *self, uint8_t digest[32]);
