#include "cache.h"

#include <stdlib.h>

/* So many objects are drawn at most for one that what is asked suits. */
#define TRIES 64

void requests_init(Requests *r, const Cache *cache, const Plan *plan, const Objects *objects) {
    *r = (Requests){.cache = cache, .plan = plan, .objects = objects};
    picker_init(&r->picker, plan->ranks, cache->zipf, 0);
    r->ranked = allocate(plan->ranks * sizeof *r->ranked);
    for (uint64_t i = 0; i < plan->ranks; i++) r->ranked[i] = i;
    r->next = plan->ranks + plan->once;
    r->random = UINT64_MAX / 2; /* not where the picker draws */
}

void requests_free(Requests *r) {
    free(r->ranked);
}

static double draw(Requests *r) {
    return fraction(mix(r->random++));
}

/* One that will be asked for again takes the rank of another, which nobody will ask for any more.
 */
static uint64_t fresh(Requests *r) {
    uint64_t object = r->next++;
    if (draw(r) >= r->cache->one_hit)
        r->ranked[(uint64_t)(draw(r) * (double)r->plan->ranks)] = object;
    return object;
}

static int suits(const Objects *o, uint64_t object, Ask ask) {
    if (ask == ASK_GET || ask == ASK_DELETE) return 1;
    return object_exists(o, object) && (ask != ASK_INCREMENT || object_is_counter(o, object));
}

static Request of_known(Requests *r, Ask ask) {
    uint64_t object = 0;
    for (int i = 0; i < TRIES; i++) {
        object = r->ranked[picker_next(&r->picker)];
        if (suits(r->objects, object, ask)) return (Request){object, ask};
    }
    return (Request){object, ASK_GET};
}

/* The sets that follow a miss come by themselves, and are not among these. */
Request requests_next(Requests *r) {
    const Cache *c = r->cache;
    const Plan *p = r->plan;
    double fresh_sets = p->fresh * p->written_first, fresh_gets = p->fresh - fresh_sets;
    const double shares[ASKS] = {[ASK_GET] = p->gets > fresh_gets ? p->gets - fresh_gets : 0,
                                 [ASK_SET] = p->overwrites,
                                 [ASK_ADD] = c->adds,
                                 [ASK_INCREMENT] = c->increments,
                                 [ASK_DELETE] = c->deletes};
    double all = p->fresh, left;
    for (int ask = 0; ask < ASKS; ask++) all += shares[ask];
    left = draw(r) * all;
    if ((left -= fresh_gets) < 0) return (Request){fresh(r), ASK_GET};
    if ((left -= fresh_sets) < 0) {
        uint64_t object = fresh(r);
        return (Request){object, object_exists(r->objects, object) ? ASK_SET : ASK_GET};
    }
    for (int ask = 0; ask < ASKS; ask++)
        if ((left -= shares[ask]) < 0) return of_known(r, (Ask)ask);
    return of_known(r, ASK_GET);
}
