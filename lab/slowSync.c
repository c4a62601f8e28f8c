/* Makes every sync of a file take as long as it does on a slower disk. Preloaded (LD_PRELOAD) into a server
 * by parts/slowDisk.ts; SLOW_SYNC_US says by how many microseconds a sync takes longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int descriptor) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const char *delay = getenv("SLOW_SYNC_US");
  long microseconds = delay == NULL ? 0 : atol(delay);
  struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
  /* A signal ends the sleep early. */
  while (nanosleep(&left, &left) == -1 && errno == EINTR);
  return sync(descriptor);
}

int fsync(int descriptor) { return slowly("fsync", descriptor); }

int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }
