// A preload library that behaves towards traced as heapprofd's for glibc does: its constructor
// forks a heapprofd for the process, which registers as a producer, and waits at the start if
// PERFETTO_HEAPPROFD_BLOCKING_INIT is set. It hooks no allocator: the profile has one callstack with
// fixed values, through the function `leaky` of the program if there is one.
//
// cc -shared -fPIC -o libheapprofd_glibc_preload.so preload.c

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Facts of the process, taken before the fork.
static struct {
    pid_t pid;
    char path[PATH_MAX];
    uint8_t build_id[64];
    size_t build_id_size;
    uint64_t function; // offset of `leaky` from the load address; 0 if there is none
    uint64_t base;
} facts;

// --- protobuf -------------------------------------------------------------------------

struct buffer {
    uint8_t bytes[16384];
    size_t size;
};

static void put(struct buffer *b, const void *bytes, size_t size) {
    if (b->size + size > sizeof b->bytes) abort();
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static void put_varint(struct buffer *b, uint64_t value) {
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        if (value) byte |= 0x80;
        put(b, &byte, 1);
    } while (value);
}

static void number(struct buffer *b, int field, uint64_t value) {
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, value);
}

static void bytes(struct buffer *b, int field, const void *value, size_t size) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, size);
    put(b, value, size);
}

static void text(struct buffer *b, int field, const char *value) {
    bytes(b, field, value, strlen(value));
}

static void message(struct buffer *b, int field, const struct buffer *inner) {
    bytes(b, field, inner->bytes, inner->size);
}

struct field {
    int number;
    uint64_t value; // of a number
    const uint8_t *bytes;
    size_t size;
};

static uint64_t varint(const uint8_t **at, const uint8_t *end) {
    uint64_t value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    return value;
}

static int next(const uint8_t **at, const uint8_t *end, struct field *field) {
    if (*at >= end) return 0;
    uint64_t tag = varint(at, end);
    memset(field, 0, sizeof *field);
    field->number = (int)(tag >> 3);
    switch (tag & 7) {
    case 0: field->value = varint(at, end); break;
    case 1: *at += 8; break;
    case 5: *at += 4; break;
    case 2:
        field->size = varint(at, end);
        field->bytes = *at;
        if (field->size > (size_t)(end - *at)) return 0;
        *at += field->size;
        break;
    default: return 0;
    }
    return *at <= end;
}

// Returns a number of a message, or 0.
static uint64_t number_of(const uint8_t *at, size_t size, int wanted) {
    struct field field;
    for (const uint8_t *end = at + size; next(&at, end, &field);)
        if (field.number == wanted) return field.value;
    return 0;
}

// --- IPC: u32 length, IPCFrame ---------------------------------------------------------

static int traced = -1;
static uint64_t request = 0;
static uint64_t service = 0;
static struct {
    char name[64];
    uint64_t id;
} methods[32];
static int method_count = 0;

static void frame(int field, const struct buffer *inner) {
    static struct buffer b;
    b.size = 0;
    number(&b, 2, ++request);
    message(&b, field, inner);
    uint32_t size = (uint32_t)b.size;
    if (send(traced, &size, sizeof size, MSG_NOSIGNAL) < 0) _exit(0);
    for (size_t sent = 0; sent < b.size;) {
        ssize_t n = send(traced, b.bytes + sent, b.size - sent, MSG_NOSIGNAL);
        if (n <= 0) _exit(0);
        sent += (size_t)n;
    }
}

static void invoke(const char *method, const struct buffer *arguments) {
    static struct buffer b;
    for (int i = 0; i < method_count; i++) {
        if (strcmp(methods[i].name, method)) continue;
        b.size = 0;
        number(&b, 1, service);
        number(&b, 2, methods[i].id);
        bytes(&b, 3, arguments->bytes, arguments->size);
        frame(5, &b);
        return;
    }
    abort();
}

static void read_whole(void *to, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(traced, (char *)to + got, size - got, 0);
        if (n <= 0) _exit(0); // traced is gone
        got += (size_t)n;
    }
}

// Request of the last received frame, and the one that traced answers with its commands.
static uint64_t answered = 0, commands = 0;

// Reads a frame; returns the field of its message.
static struct field receive(void) {
    static uint8_t *data;
    uint32_t size;
    read_whole(&size, sizeof size);
    data = realloc(data, size + 1);
    read_whole(data, size);
    struct field field, found = {0};
    const uint8_t *at = data;
    while (next(&at, data + size, &field)) {
        if (field.number == 2) answered = field.value;
        if (field.number > 2) found = field;
    }
    return found;
}

static void bind_service(void) {
    struct buffer b = {.size = 0};
    text(&b, 1, "ProducerPort");
    frame(3, &b);
    struct field reply = receive();
    struct field field, inner;
    const uint8_t *at = reply.bytes;
    while (next(&at, reply.bytes + reply.size, &field)) {
        if (field.number == 2) service = field.value;
        if (field.number != 3 || method_count == 32) continue;
        const uint8_t *part = field.bytes;
        while (next(&part, field.bytes + field.size, &inner)) {
            if (inner.number == 1) methods[method_count].id = inner.value;
            if (inner.number == 2 && inner.size < 64)
                memcpy(methods[method_count].name, inner.bytes, inner.size);
        }
        method_count++;
    }
}

static void connect_to_traced(int client) {
    const char *name = getenv("PERFETTO_PRODUCER_SOCK_NAME");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!name || strlen(name) >= sizeof address.sun_path) _exit(1);
    strcpy(address.sun_path, name);
    // heapprofd keeps trying too, even without its program.
    for (int wait = 100;; wait = wait < 5000 ? wait * 2 : wait) {
        traced = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!connect(traced, (struct sockaddr *)&address, sizeof address)) return;
        close(traced);
        struct pollfd program = {.fd = client, .events = POLLIN};
        if (poll(&program, 1, wait) > 0) _exit(0);
    }
}

// --- the profile -----------------------------------------------------------------------

static uint64_t buffer_id, instance;
static uint16_t chunks = 0;

static void interned(struct buffer *b, int field, uint64_t id, const void *value, size_t size) {
    struct buffer inner = {.size = 0};
    number(&inner, 1, id);
    bytes(&inner, 2, value, size);
    message(b, field, &inner);
}

// One packet: a callstack of one frame, with 3 allocations of 4000 bytes and 1 free.
static void profile(struct buffer *packet, int disconnected) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    struct buffer data = {.size = 0}, part = {.size = 0};
    const char *name = "allocate";
    if (!facts.function) interned(&data, 5, 1, name, strlen(name));
    interned(&data, 16, 1, facts.build_id, facts.build_id_size);
    // Each component of the path is a string.
    char path[PATH_MAX];
    strcpy(path, facts.path);
    uint64_t components = 0;
    for (char *word = strtok(path, "/"); word; word = strtok(NULL, "/"))
        interned(&data, 17, ++components, word, strlen(word));
    number(&part, 1, 1); // Mapping
    number(&part, 2, 1);
    number(&part, 4, facts.base);
    number(&part, 5, facts.base + (1 << 20));
    for (uint64_t i = 1; i <= components; i++) number(&part, 7, i);
    message(&data, 19, &part);
    part.size = 0; // Frame
    number(&part, 1, 1);
    if (!facts.function) number(&part, 2, 1);
    number(&part, 3, 1);
    number(&part, 4, facts.function ? facts.function + 1 : 0x1000);
    message(&data, 6, &part);
    part.size = 0; // Callstack
    number(&part, 1, 1);
    number(&part, 2, 1);
    message(&data, 7, &part);

    struct buffer sample = {.size = 0}, process = {.size = 0}, dump = {.size = 0};
    number(&sample, 1, 1);
    number(&sample, 2, 12000);
    number(&sample, 3, 4000);
    number(&sample, 4, ns);
    number(&sample, 5, 3);
    number(&sample, 6, 1);
    number(&process, 1, (uint64_t)facts.pid);
    message(&process, 2, &sample);
    if (disconnected) number(&process, 6, 1);
    number(&process, 9, ns);
    text(&process, 11, "libc.malloc");
    number(&process, 12, 4096);
    number(&process, 13, 4096);
    message(&dump, 5, &process);
    number(&dump, 7, 0);

    number(packet, 8, ns);
    message(packet, 12, &data);
    number(packet, 13, 1);
    message(packet, 37, &dump);
}

static void commit(int disconnected) {
    struct buffer b = {.size = 0}, chunk = {.size = 0}, move = {.size = 0};
    static struct buffer packet;
    packet.size = 0;
    number(&b, 1, 1);
    number(&b, 2, buffer_id);
    invoke("RegisterTraceWriter", &b);
    profile(&packet, disconnected);
    uint32_t id = chunks++;
    uint16_t writer = 1, packets = 1;
    put(&chunk, &id, sizeof id);
    put(&chunk, &writer, sizeof writer);
    put(&chunk, &packets, sizeof packets);
    put_varint(&chunk, packet.size);
    put(&chunk, packet.bytes, packet.size);
    number(&move, 1, 0);
    number(&move, 2, 0);
    number(&move, 3, buffer_id);
    bytes(&move, 4, chunk.bytes, chunk.size);
    b.size = 0;
    message(&b, 1, &move);
    invoke("CommitData", &b);
}

static int written = 0;

// A command of traced. Returns 0 after the end of the session.
static int command(const struct field *reply, int client) {
    struct field field, inner;
    const uint8_t *at = reply->bytes;
    struct buffer b = {.size = 0};
    while (reply->number == 6 && next(&at, reply->bytes + reply->size, &field)) {
        if (field.number != 3) continue; // reply_proto
        const uint8_t *part = field.bytes;
        while (next(&part, field.bytes + field.size, &inner)) {
            switch (inner.number) {
            case 6: { // SetupDataSource
                instance = number_of(inner.bytes, inner.size, 1);
                const uint8_t *setup = inner.bytes;
                struct field config;
                while (next(&setup, inner.bytes + inner.size, &config))
                    if (config.number == 2) buffer_id = number_of(config.bytes, config.size, 2);
                written = 0;
                // The program may start.
                send(client, "1", 1, MSG_NOSIGNAL);
                break;
            }
            case 5: // Flush
                number(&b, 3, number_of(inner.bytes, inner.size, 2));
                invoke("CommitData", &b);
                break;
            case 2: // StopDataSource
                if (!written) commit(0);
                number(&b, 1, instance);
                invoke("NotifyDataSourceStopped", &b);
                return 0;
            }
        }
    }
    return 1;
}

static void heapprofd(int client) {
    connect_to_traced(client);
    bind_service();
    struct buffer b = {.size = 0}, descriptor = {.size = 0};
    text(&b, 3, "perfetto.heapprofd");
    invoke("InitializeConnection", &b);
    b.size = 0;
    invoke("GetAsyncCommand", &b);
    commands = request;
    text(&descriptor, 1, "android.heapprofd");
    number(&descriptor, 2, 1);
    message(&b, 1, &descriptor);
    invoke("RegisterDataSource", &b);
    struct pollfd fds[2] = {{.fd = traced, .events = POLLIN}, {.fd = client, .events = POLLIN}};
    while (poll(fds, 2, -1) >= 0) {
        if (fds[0].revents) {
            struct field reply = receive();
            if (answered == commands && !command(&reply, client)) break;
        }
        if (fds[1].fd >= 0 && fds[1].revents) {
            // The program is gone.
            fds[1].fd = -1;
            if (instance && !written) {
                commit(1);
                written = 1;
            }
        }
    }
    // traced reads what was sent before it sees the end.
    shutdown(traced, SHUT_WR);
    char rest[256];
    while (recv(traced, rest, sizeof rest, 0) > 0) {}
    _exit(0);
}

// --- the process -----------------------------------------------------------------------

static int executable(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    facts.base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE) continue;
        const uint8_t *at = (const uint8_t *)info->dlpi_addr + header->p_vaddr;
        const uint8_t *end = at + header->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const uint8_t *name = at + sizeof *note;
            const uint8_t *value = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof facts.build_id) {
                facts.build_id_size = note->n_descsz;
                memcpy(facts.build_id, value, note->n_descsz);
            }
            at = value + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 1; // the first one is the program
}

__attribute__((constructor)) static void start(void) {
    facts.pid = getpid();
    ssize_t size = readlink("/proc/self/exe", facts.path, sizeof facts.path - 1);
    if (size < 0) return;
    facts.path[size] = 0;
    dl_iterate_phdr(executable, NULL);
    void *function = dlsym(RTLD_DEFAULT, "leaky");
    if (function) facts.function = (uint64_t)function - facts.base;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return;
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            setsid();
            if (chdir("/")) _exit(1);
            int client = fcntl(pair[1], F_DUPFD_CLOEXEC, 600);
            for (int fd = 3; fd < 512; fd++) close(fd);
            heapprofd(client);
        }
        _exit(0);
    }
    close(pair[1]);
    while (waitpid(child, NULL, 0) < 0) {}
    const char *blocking = getenv("PERFETTO_HEAPPROFD_BLOCKING_INIT");
    char byte;
    if (blocking && blocking[0]) {
        while (read(pair[0], &byte, 1) < 0) {}
    }
    // Its end tells heapprofd that the process is gone.
    (void)fcntl(pair[0], F_DUPFD_CLOEXEC, 512);
    close(pair[0]);
}
