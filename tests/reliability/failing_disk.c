/* A disk whose fsync can fail, as Linux does it: pages that were waiting when fsync failed are never written, and the
   next fsync succeeds without them. Loaded with LD_PRELOAD.

   Beside every database file F and its log F-wal lies F.disk: what a power cut would leave. A write reaches it with the
   next fsync that succeeds. While the file named by FSYNC_FAILS exists, every fsync of these files fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct range { ino_t inode; off_t start; size_t length; };
static struct range *waiting;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The name of a file that is looked after, or NULL. */
static const char *name_of(int fd, char *name, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, size - 1);
    if (length < 4) return NULL;
    name[length] = 0;
    return !strcmp(name + length - 3, ".db") || !strcmp(name + length - 4, "-wal") ? name : NULL;
}

static int open_disk(const char *name) {
    char disk[4200];
    snprintf(disk, sizeof disk, "%s.disk", name);
    return syscall(SYS_openat, AT_FDCWD, disk, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void note(int fd, off_t start, ssize_t length) {
    char name[4096];
    struct stat found;
    if (length <= 0 || !name_of(fd, name, sizeof name) || fstat(fd, &found)) return;
    pthread_mutex_lock(&lock);
    if (count == room) waiting = realloc(waiting, (room = room ? 2 * room : 1024) * sizeof *waiting);
    waiting[count++] = (struct range){found.st_ino, start, (size_t)length};
    pthread_mutex_unlock(&lock);
}

/* Take the waiting ranges of a file off the list; write them to its disk unless `fails`. */
static void settle(int fd, const char *name, int fails) {
    struct stat found;
    if (fstat(fd, &found)) return;
    int disk = open_disk(name);
    pthread_mutex_lock(&lock);
    size_t kept = 0;
    for (size_t n = 0; n < count; n++) {
        if (waiting[n].inode != found.st_ino) { waiting[kept++] = waiting[n]; continue; }
        if (fails) continue;
        char *bytes = malloc(waiting[n].length);
        ssize_t length = syscall(SYS_pread64, fd, bytes, waiting[n].length, waiting[n].start);
        if (length > 0 && syscall(SYS_pwrite64, disk, bytes, length, waiting[n].start) != length) abort();
        free(bytes);
    }
    count = kept;
    pthread_mutex_unlock(&lock);
    syscall(SYS_close, disk);
}

static int synchronise(int fd) {
    char name[4096];
    if (!name_of(fd, name, sizeof name)) return syscall(SYS_fdatasync, fd);
    const char *control = getenv("FSYNC_FAILS");
    int fails = control && !access(control, F_OK);
    settle(fd, name, fails);
    if (fails) { errno = EIO; return -1; }
    return 0;
}

int fsync(int fd) { return synchronise(fd); }
int fdatasync(int fd) { return synchronise(fd); }

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t start) {
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, length, start);
    note(fd, start, done);
    return done;
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t start) { return pwrite(fd, bytes, length, start); }

ssize_t write(int fd, const void *bytes, size_t length) {
    off_t start = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    ssize_t done = syscall(SYS_write, fd, bytes, length);
    if (start >= 0) note(fd, start, done);
    return done;
}

int ftruncate(int fd, off_t length) {
    char name[4096];
    if (name_of(fd, name, sizeof name)) {
        int disk = open_disk(name);
        syscall(SYS_ftruncate, disk, length);
        syscall(SYS_close, disk);
    }
    return syscall(SYS_ftruncate, fd, length);
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

int unlink(const char *name) {
    char disk[4200];
    snprintf(disk, sizeof disk, "%s.disk", name);
    syscall(SYS_unlink, disk);
    return syscall(SYS_unlink, name);
}
