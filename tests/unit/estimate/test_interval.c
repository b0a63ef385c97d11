/* Intervals hold what they promise: drawn many times from a known set, they cover its sum. */
#include "../test.h"

#include "interval.h"

#include <math.h>

#define KEYS   4000
#define ROUNDS 2000

static double numbers[KEYS];

static double make_numbers(void) {
    double sum = 0;
    for (int i = 0; i < KEYS; i++) {
        numbers[i] = 20 + (double)(test_random() % 1000) / 10;
        if (test_random() % 20 == 0) numbers[i] *= 10; /* some are large */
        sum += numbers[i];
    }
    return sum;
}

/* The first so many after a shuffle. */
static spread draw(int count) {
    spread s = {0};
    for (int i = 0; i < count; i++) {
        int j = i + (int)(test_random() % (uint64_t)(KEYS - i));
        double swap = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = swap;
        spread_add(&s, (double)KEYS / count, numbers[i]);
    }
    return s;
}

static void check_covers(int count, double sum) {
    int covered = 0;
    for (int round = 0; round < ROUNDS; round++) {
        spread s = draw(count);
        covered += fabs(s.sum - sum) <= interval_error(&s, 0, 0);
    }
    /* 95%, but for chance and for how few are drawn */
    CHECK(covered > ROUNDS * 92 / 100 && covered < ROUNDS * 98 / 100);
}

static void check_whole(double sum) {
    spread s = draw(KEYS);
    CHECK(fabs(s.sum - sum) < 1e-6 * sum && spread_error(&s) == 0);
}

static void check_parts(void) {
    spread none = {0}, one = {0};
    spread_add(&one, 10, 5);
    CHECK(spread_error(&none) == 0 && interval_error(&none, 0, 0) == 0);
    CHECK(spread_error(&one) == 0 && one.sum == 50);
    CHECK(fabs(interval_error(&none, 0, 1000) - MODEL_ERROR * 1000) < 1e-9);
    CHECK(fabs(interval_error(&none, 4, 3 / MODEL_ERROR) - 5) < 1e-9);
}

int main(void) {
    double sum = make_numbers();
    check_covers(800, sum);
    check_covers(3000, sum);
    check_whole(sum);
    check_parts();
    return test_report("interval");
}
