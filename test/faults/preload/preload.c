/* Loaded into redis-server before libc. It delays syncs, steps the wall clock, and ignores the signal that would end a
 * process whose file may not grow. The tests compile it and control it through a shared file; see ../preload_linux.go. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FILES 64

static struct control {
  _Atomic int64_t sync_delay_us; /* how much longer a sync takes */
  _Atomic int64_t clock_us;      /* how far the wall clock is ahead */
  struct {                       /* how long each file was when its last complete sync began */
    _Atomic uint64_t inode;
    _Atomic int64_t length;
  } synced[FILES];
} nothing, *control = &nothing;

__attribute__((constructor)) static void start(void) {
  signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE then fails with EFBIG, as one on a full disk with ENOSPC */
  const char *path = getenv("REMIT_FAULTS_CONTROL");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shared != MAP_FAILED) control = shared;
  close(fd);
}

static void note(const struct stat *file) {
  for (int i = 0; i < FILES; i++) {
    uint64_t empty = 0;
    if (control->synced[i].inode == file->st_ino ||
        atomic_compare_exchange_strong(&control->synced[i].inode, &empty, file->st_ino)) {
      control->synced[i].length = file->st_size;
      return;
    }
  }
}

static int synced(int fd, const char *name) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  struct stat before;
  int known = fstat(fd, &before) == 0;
  int result = sync(fd);
  if (control->sync_delay_us > 0) usleep(control->sync_delay_us);
  if (result == 0 && known) note(&before); /* data appended meanwhile belongs to the next sync */
  return result;
}

int fdatasync(int fd) { return synced(fd, "fdatasync"); }
int fsync(int fd) { return synced(fd, "fsync"); }

/* Only the wall clock steps: what measures how much time has passed goes on. */
static void step(int64_t *seconds, int64_t *microseconds) {
  int64_t stepped = *microseconds + control->clock_us;
  int64_t carry = stepped / 1000000;
  if (stepped % 1000000 < 0) carry--;
  *seconds += carry;
  *microseconds = stepped - carry * 1000000;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  tv->tv_sec = now.tv_sec;
  tv->tv_usec = now.tv_nsec / 1000;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) {
    int64_t seconds = now->tv_sec, microseconds = now->tv_nsec / 1000, rest = now->tv_nsec % 1000;
    step(&seconds, &microseconds);
    now->tv_sec = seconds;
    now->tv_nsec = microseconds * 1000 + rest;
  }
  return result;
}

time_t time(time_t *seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds) *seconds = now.tv_sec;
  return now.tv_sec;
}
