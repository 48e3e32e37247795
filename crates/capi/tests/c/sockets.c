/* A server and a client of TCP on threads in user space: echoes what comes to port 7, and fetches from an address.
 * sockets SOCKET APPLICATION PEER PORT */
#include <headway_threads.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct headway_runtime *runtime;
static const char *peer;
static uint16_t peer_port;

static void must(int code, const char *what)
{
    if (code == 0) return;
    fprintf(stderr, "%s: %d %s\n", what, code, headway_last_error());
    exit(1);
}

/* Two connections that are served by one thread, which waits for both. */
static void echo(struct headway_stream *streams[2])
{
    struct headway_awaited awaited[2];
    int open = 2;
    for (int at = 0; at < 2; at++) awaited[at] = (struct headway_awaited){ streams[at], HEADWAY_READABLE, 0 };
    while (open > 0) {
        must(headway_tcp_wait(runtime, awaited, 2, UINT64_MAX), "wait");
        for (int at = 0; at < 2; at++) {
            char buffer[5000];
            size_t bytes;
            if (!(awaited[at].ready & HEADWAY_READABLE)) continue;
            must(headway_tcp_receive(streams[at], buffer, sizeof buffer, &bytes), "receive");
            if (bytes > 0) {
                must(headway_tcp_send(streams[at], buffer, bytes), "send");
            } else {
                awaited[at].events = 0;
                must(headway_tcp_shutdown(streams[at]), "shutdown");
                open--;
            }
        }
    }
    for (int at = 0; at < 2; at++) must(headway_tcp_close(streams[at]), "close");
}

/* Asks the peer, whose answer is the question, twice. */
static void ask(void)
{
    struct headway_stream *stream;
    char buffer[64];
    size_t all = 0, bytes;
    must(headway_tcp_connect(runtime, peer, peer_port, 20000000000, &stream), "connect");
    struct headway_awaited awaited = { stream, HEADWAY_READABLE, 0 };
    if (headway_tcp_send(stream, buffer, SIZE_MAX) != HEADWAY_E_ARGUMENT) exit(10);
    if (headway_tcp_receive(stream, buffer, SIZE_MAX, &bytes) != HEADWAY_E_ARGUMENT) exit(11);
    if (headway_tcp_wait(runtime, &awaited, SIZE_MAX / 2, 0) != HEADWAY_E_ARGUMENT) exit(12);
    must(headway_tcp_send(stream, "question", 8), "send");
    must(headway_tcp_shutdown(stream), "shutdown");
    do {
        must(headway_tcp_receive(stream, buffer + all, sizeof buffer - all, &bytes), "receive");
        all += bytes;
    } while (bytes > 0);
    if (all != 16 || memcmp(buffer, "questionquestion", 16) != 0) exit(2);
    if (headway_tcp_send(stream, "more", 4) != HEADWAY_E_CONNECTION) exit(3);
    must(headway_tcp_close(stream), "close");
    if (headway_tcp_connect(runtime, peer, 1, 20000000000, &stream) != HEADWAY_E_CONNECTION) exit(4);
    if (headway_tcp_connect(runtime, "nowhere", 1, 1, &stream) != HEADWAY_E_ADDRESS) exit(5);
}

static void serve(void *unused)
{
    struct headway_listener *listener, *second;
    struct headway_stream *streams[2];
    (void)unused;
    must(headway_tcp_listen(runtime, 7, 16, &listener), "listen");
    if (headway_tcp_listen(runtime, 7, 16, &second) != HEADWAY_E_ADDRESS) exit(6);
    if (headway_tcp_accept(listener, 1000, streams) != HEADWAY_E_TIMEOUT) exit(7);
    puts("ready");
    fflush(stdout);
    for (int at = 0; at < 2; at++) must(headway_tcp_accept(listener, UINT64_MAX, &streams[at]), "accept");
    echo(streams);
    ask();
    must(headway_tcp_close_listener(listener), "close");
    must(headway_tcp_flush(runtime, 20000000000), "flush");
}

int main(int argc, char **argv)
{
    struct headway_runtime_options options = { .size = sizeof options, .kthreads = 1, .stack_bytes = 256 << 10 };
    struct headway_runtime *without;
    if (argc != 5) return 8;
    options.network_buffer_bytes = 64 << 10;
    if (headway_runtime_start(&options, &without) != HEADWAY_E_ARGUMENT) return 9;
    options.host_socket = argv[1];
    options.application = argv[2];
    peer = argv[3];
    peer_port = (uint16_t)atoi(argv[4]);
    must(headway_runtime_start(&options, &runtime), "start");
    must(headway_runtime_run(runtime, serve, NULL), "run");
    must(headway_runtime_stop(runtime), "stop");
    puts("done");
    return 0;
}
