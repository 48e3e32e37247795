/* For a program without the C++ library: a plugin in C++ is loaded while requests are suspended, and its exceptions and thread-local variables are a request's. */
#include "torture.h"

#include <dlfcn.h>
#include <stdio.h>

WAY(late_plugin) {
    void *plugin = dlopen("libtorture_plugin.so", RTLD_NOW);
    if (!plugin) fprintf(stderr, "%s\n", dlerror());
    EXPECT(plugin);
    if (!plugin) return;
    unsigned long (*const answer)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(plugin, "plugin_answer");
    EXPECT(answer && answer(seed) == seed);
    work(seed);
    EXPECT(answer && answer(seed + 1) == seed + 1);
}
