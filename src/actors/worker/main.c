/* SPDX-License-Identifier: Apache-2.0 */
/* gar-worker: the worker process of native actors. Loads the shared object that is its argument and runs the class that
 * it offers. Usage: gar-worker FILE.so [FUNCTION]; started by a pool. */
#include <dlfcn.h>
#include <gar/actor.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        (void)fprintf(stderr, "usage: gar-worker FILE.so [FUNCTION] (started by an actor pool)\n");
        return 64;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "gar-worker: %s\n", dlerror());
        return 65;
    }
    const char *name = argc > 2 ? argv[2] : GAR_ACTOR_ENTRY;
    void *symbol = dlsym(library, name);
    const struct gar_actor_class *(*entry)(void) = NULL;
    if (symbol == NULL) {
        (void)fprintf(stderr, "gar-worker: %s has no function %s\n", argv[1], name);
        return 65;
    }
    /* ISO C has no conversion between the two kinds of pointers; POSIX says that they look alike. */
    memcpy(&entry, &symbol, sizeof entry);
    const struct gar_actor_class *actor_class = entry();
    if (actor_class == NULL || actor_class->abi != GAR_ACTOR_ABI) {
        (void)fprintf(stderr, "gar-worker: %s was built for another version of gar/actor.h\n",
                      argv[1]);
        return 65;
    }
    return gar_actor_worker_run(actor_class);
}
