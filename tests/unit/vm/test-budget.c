/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of all machines, and the line of those who wait for it. */
#include "bj-budget.h"
#include "bj-error.h"

#define TOTAL 1024
#define WAITERS 4

/* One who waits in a thread of his own. */
typedef struct
{
  BjBudget *budget;
  GCancellable *cancellable;
  GThread *thread;
  GMutex lock; /* guards the rest */
  guint place; /* as last told; 0 never */
  guint used;
  guint times;
  gboolean over;
  gboolean got;
} Waiter;

static void
on_place (guint place, guint used_mib, guint total_mib, gpointer data)
{
  Waiter *waiter = data;

  g_assert_cmpuint (total_mib, ==, TOTAL);
  g_mutex_lock (&waiter->lock);
  g_assert_true (place != waiter->place || used_mib != waiter->used);
  waiter->place = place;
  waiter->used = used_mib;
  waiter->times++;
  g_mutex_unlock (&waiter->lock);
}

static gpointer
wait_thread (gpointer data)
{
  Waiter *waiter = data;
  g_autoptr(GError) error = NULL;
  gboolean got = bj_budget_take (waiter->budget, TOTAL, on_place, waiter, waiter->cancellable, &error);

  if (!got)
    g_assert_error (error, BJ_ERROR, BJ_ERROR_CANCELLED);
  g_mutex_lock (&waiter->lock);
  waiter->over = TRUE;
  waiter->got = got;
  g_mutex_unlock (&waiter->lock);
  return NULL;
}

static guint
get_place (Waiter *waiter)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&waiter->lock);

  return waiter->over ? 0 : waiter->place;
}

static void
wait_for_place (Waiter *waiter, guint place)
{
  while (get_place (waiter) != place)
    g_usleep (1000);
}

/* Waits until he is told his place, so that all stand in the order in which they came. */
static void
line_up (Waiter *waiters, BjBudget *budget)
{
  for (guint i = 0; i < WAITERS; i++)
    {
      waiters[i] = (Waiter) { .budget = budget, .cancellable = g_cancellable_new () };
      g_mutex_init (&waiters[i].lock);
      waiters[i].thread = g_thread_new ("waiter", wait_thread, &waiters[i]);
      wait_for_place (&waiters[i], i + 1);
      g_assert_cmpuint (waiters[i].used, ==, TOTAL);
    }
}

static void
join (Waiter *waiter, gboolean got)
{
  g_thread_join (waiter->thread);
  g_assert_cmpint (waiter->got, ==, got);
  g_object_unref (waiter->cancellable);
  g_mutex_clear (&waiter->lock);
}

/* One in the middle leaves, then the first gets its turn: all behind them are told. */
static void
test_places (void)
{
  BjBudget *budget = bj_budget_new (TOTAL);
  Waiter waiters[WAITERS];

  g_assert_true (bj_budget_try (budget, TOTAL));
  line_up (waiters, budget);
  g_assert_false (bj_budget_try (budget, 1));
  g_cancellable_cancel (waiters[1].cancellable);
  join (&waiters[1], FALSE);
  wait_for_place (&waiters[2], 2);
  wait_for_place (&waiters[3], 3);
  g_assert_cmpuint (get_place (&waiters[0]), ==, 1);
  for (guint i = 0; i < WAITERS; i++)
    {
      if (i == 1)
        continue;
      bj_budget_give (budget, TOTAL);
      join (&waiters[i], TRUE);
      if (i == 0)
        {
          wait_for_place (&waiters[2], 1);
          wait_for_place (&waiters[3], 2);
        }
    }
  bj_budget_give (budget, TOTAL);
  g_assert_true (bj_budget_try (budget, TOTAL));
  bj_budget_give (budget, TOTAL);
  bj_budget_free (budget);
}

static void
test_never (void)
{
  BjBudget *budget = bj_budget_new (TOTAL);
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_budget_take (budget, TOTAL + 1, NULL, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
  bj_budget_free (budget);
}

static gboolean
give_back (gpointer data)
{
  BjBudget **budget = data;

  if (*budget == NULL)
    return FALSE;
  bj_budget_give (g_steal_pointer (budget), TOTAL / 2);
  return TRUE;
}

/* What is only in stock makes room before anybody is told to wait. */
static void
test_stock (void)
{
  BjBudget *budget = bj_budget_new (TOTAL);
  BjBudget *holder = budget;
  Waiter waiter = { 0 };

  g_mutex_init (&waiter.lock);
  bj_budget_set_stock (budget, give_back, &holder);
  g_assert_true (bj_budget_try (budget, TOTAL / 2));
  g_assert_true (bj_budget_take (budget, TOTAL, on_place, &waiter, NULL, NULL));
  g_assert_cmpuint (waiter.times, ==, 0);
  bj_budget_give (budget, TOTAL);
  bj_budget_free (budget);
  g_mutex_clear (&waiter.lock);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/budget/places", test_places);
  g_test_add_func ("/budget/never", test_never);
  g_test_add_func ("/budget/stock", test_stock);
  return g_test_run ();
}
