// Small heaps with everything in them that a view can get wrong.

import { encode } from "./encode.mjs";

const APP = "/data/app/com.example.app/lib/arm64/libgame.so";
const SKIA = "/system/lib64/libhwui.so";
const LIBC = "/apex/com.android.runtime/lib64/bionic/libc.so";
const ART = "/apex/com.android.art/lib64/libart.so";

const f = {
  main: { name: "main", lib: APP, file: "main.cpp", line: 10 },
  loop: { name: "Game::loop()", lib: APP, file: "game.cpp", line: 44 },
  loop2: { name: "Game::loop()", lib: APP, file: "game.cpp", line: 51 },
  level: { name: "Level::load(std::string const&)", lib: APP, file: "level.cpp", line: 7 },
  tree: { name: "Node::insert(int)", lib: APP, file: "node.cpp", line: 3 },
  decode: { name: "SkImage::decode(unsigned char[])", lib: SKIA },
  pixels: { name: "SkBitmap::allocPixels()", lib: SKIA },
  cache: { name: "operator()(byte[], int)", lib: SKIA },
  java: { name: "com.example.app.MainActivity.onCreate", kind: "java" },
  invoke: { name: "art_quick_invoke_stub", lib: ART, kind: "runtime" },
  new: { name: "operator new(unsigned long)", lib: LIBC, kind: "allocator" },
  malloc: { name: "malloc", lib: LIBC, kind: "allocator" },
};

const hits = (held, all = held, interval = 4096) => ({
  objects: held,
  space: held * interval,
  alloc_objects: all,
  alloc_space: all * interval,
});

/** Three dumps of one heap and one of another, with growth, frees, recursion and both languages. */
export function game(more = {}) {
  const dump = (round, more = {}) => ({
    label: ["before", "after-login", "level 3"][round],
    stacks: [
      { stack: [f.main, f.loop, f.level, f.new, f.malloc], values: hits(100 + 60 * round, 140 + 80 * round) },
      { stack: [f.main, f.loop2, f.level, f.new, f.malloc], values: hits(50, 60 + 5 * round) },
      { stack: [f.main, f.loop, f.decode, f.pixels, f.malloc], values: hits(300 + 100 * round, 600 + 300 * round) },
      { stack: [f.java, f.invoke, f.decode, f.pixels, f.malloc], values: hits(80, 90 + round) },
      { stack: [f.java, f.invoke, f.cache, f.malloc], values: hits(round === 2 ? 0 : 40, 44) },
      { stack: [f.main, f.tree, f.tree, f.tree, f.new, f.malloc], values: hits(16, 20) },
      { stack: [f.main, f.tree, f.new, f.malloc], values: hits(8, 8) },
      ...(round > 0 ? [{ stack: [f.main, f.loop, f.cache, f.malloc], values: hits(25 * round) }] : []),
      { stack: [f.malloc], values: hits(3, 3) },
    ],
    ...more,
  });
  return encode({
    dumps: [
      dump(0),
      dump(1),
      dump(2),
      { series: 1, heap: "custom.pool", stacks: [{ stack: [f.main, f.level], values: hits(12) }] },
    ],
    header: {
      where: {
        total: 431816704,
        of: "resident",
        at: "level 3",
        parts: [
          { name: "native", bytes: 263192576, how: "sampled, every 4 KiB" },
          { name: "java", bytes: 100663296, how: "meminfo" },
          { name: "graphics", bytes: 42991616, how: "meminfo" },
          { name: "unseen", bytes: 24969216, how: "resident, but in none of the other rows" },
        ],
      },
      warnings: [{ kind: "buffer-overran", message: "the shared buffer overran 2 times; values are lower bounds", help: "record with `--shmem-size 16MiB`", dumps: [1] }],
      growth: [
        {
          series: 0,
          per: "iteration",
          rounds: 2,
          sites: [
            { node: 4, function: "Level::load(std::string const&)", library: "libgame.so", per_round: { value: 245760, low: 185000, high: 308000 }, verdict: "grows", says: "Each iteration leaves 240 KiB more memory allocated by Level::load, and none of it is freed." },
            { node: 5, function: "operator()(byte[], int)", library: "libhwui.so", per_round: { value: 20480, low: -19200, high: 60400 }, verdict: "cant-tell", says: "The change of +20 KiB per iteration is within the sampling error; 8 iterations would decide." },
          ],
        },
      ],
      commands: [{ what: "as a table", command: "heaptap top rec" }],
      symbolization: {
        frames_named: 812,
        frames_unnamed: 40,
        frames_with_lines: 300,
        leaf_share_unnamed: 0.02,
        share_unnamed: 0.21,
        missing: [{ path: "/data/app/libvendor.so", build_id: "ab01cd", frames: 31, share: 0.2 }],
      },
      ...more,
    },
    java: [javaHeap()],
  });
}

/** The same as it became of another dump: events in a list grew, a cache shrank. */
export function comparedHeap() {
  const heap = javaHeap();
  const [event, list, keeper, turns, cache] = ["app.Event", "Event.next", "app.Keeper.LIST", "system class", "app.Cache"].map((text) => heap.strings.push(text) - 1);
  heap.change = {
    since: "before.hprof",
    headline: "1.0 MiB → 1.5 MiB: +512.0 KiB in +80 objects",
    of_two_kinds: false,
    name: [event, 1, cache],
    status: ["grown", "new", "shrunk"],
    before: { count: [100, 0, 9], shallow: [2400, 0, 9000], native: [0, 0, 0], retained: [102_400, 0, 90_000] },
    after: { count: [180, 7, 4], shallow: [4320, 700, 4000], native: [600_000, 0, 0], retained: [184_320, 700, 40_000] },
    held: [{ class: event, pop: [0, 0], label: [list, keeper], count: [180, 1], root: [0, turns] }],
  };
  return heap;
}

export function javaHeap() {
  return {
    name: "com.example.app",
    size_model: "sizes as ART reports them",
    facts: [{ name: "source", value: "heap graph" }],
    warnings: [],
    strings: ["", "byte[]", "com.example.app.MainActivity", "android.graphics.Bitmap", "java.lang.String", "<root>", "mContext", "Clear the reference in onDestroy.", "the static field sInstance", "com.example.app"],
    histogram: { name: [1, 2, 3, 4], count: [7, 3, 5, 90], shallow: [700000, 3000, 400, 3600], native: [0, 0, 8_000_000, 0], retained: [700000, 9_000_000, 8_000_400, 10_000] },
    packages: { name: [9], count: [3], shallow: [3000], native: [0], retained: [9_000_000] },
    dominators: {
      pop: [0, 0, 0, 1, 2],
      label: [5, 2, 3, 1, 4],
      id: [null, "0x12c0", "0x12d0", "0x12e0", "0x12f0"],
      count: [1, 1, 1, 1, 90],
      shallow: [0, 1000, 80, 100000, 3600],
      retained: [9_000_000, 8_100_000, 8_000_400, 100000, 10000],
      below: [104, 3, 0, 0, 0],
      left_out: 12,
    },
    tree: { pop: [0, 0, 0], label: [5, 2, 3], count: [105, 3, 5], bytes: [9_000_000, 8_900_000, 8_000_400] },
    suspects: [
      {
        class: 2,
        what: "activity-destroyed",
        certainty: "certain",
        of_platform: false,
        count: 2,
        retained: 9_000_000,
        advice: 7,
        root: 8,
        path: [
          { class: 4, status: "not-leaking", reason: null, reference: 6, suspect: true },
          { class: 2, status: "leaking", reason: 8, reference: 0, suspect: false },
        ],
      },
    ],
    largest: [{ label: 3, id: "0x12d0", retained: 8_000_400, path: [{ class: 2, reference: 6 }] }],
    unheld: [],
    notes: [],
  };
}

const rows = (ms, columns, { source = 1, breaks = [] } = {}) => ({ ms, source: ms.map(() => source), breaks, columns });

/** Memory over time around the dumps of `game`: a gap, a restart, collections of both kinds. */
export function timeline(more = {}) {
  const MB = 1 << 20;
  const nothing = rows([], {});
  const times = [500, 1000, 1500, 2000, 3500, 4000];
  const parts = [600, 1600, 3600];
  return {
    from_ms: 500,
    to_ms: 6000,
    words: ["", "status", "meminfo-local", "log", "Background", "Explicit", "young concurrent copying"],
    processes: [
      {
        pid: 4242,
        process: "com.example.app",
        restarted: false,
        from_ms: 500,
        to_ms: 4000,
        gone_ms: 4500,
        resident: rows(times, { rss: times.map((ms) => 100 * MB + ms * 1024), oom_score_adj: times.map(() => -700) }, { breaks: [4] }),
        parts: rows(
          parts,
          {
            java: [10, 11, 12].map((n) => n * MB),
            native: [30, 40, 50].map((n) => n * MB),
            code: [20, 20, 20].map((n) => n * MB),
            stack: [1, 1, 1].map((n) => n * MB),
            graphics: [15, 15, 25].map((n) => n * MB),
            private_other: [5, 5, 5].map((n) => n * MB),
            system: [3, 3, -2].map((n) => n * MB),
            total_pss: [84, 95, 115].map((n) => n * MB),
          },
          { source: 2 },
        ),
        graphics: nothing,
        java_heap: nothing,
        collections: rows(
          [900, 1900, 2900],
          {
            reason: [4, 5, 4],
            collector: [6, 6, 6],
            freed_bytes: [3 * MB, 0, null],
            live: [8 * MB, 9 * MB, 10 * MB],
            total: [16 * MB, 16 * MB, 16 * MB],
            pauses: [1, 2, 0],
            longest_pause_ns: [500_000, 1_200_000, null],
            duration_ns: [80_000_000, 90_000_000, null],
            ours: [0, 1, 0],
          },
          { source: 3 },
        ),
      },
      {
        pid: 5050,
        process: "com.example.app",
        restarted: true,
        from_ms: 5000,
        to_ms: 6000,
        gone_ms: null,
        resident: rows([5000, 6000], { rss: [40 * MB, 41 * MB] }),
        parts: nothing,
        graphics: nothing,
        java_heap: nothing,
        collections: nothing,
      },
    ],
    system: nothing,
    labels: [{ ms: 2400, until_ms: null, pid: 0, text: "tap\u202e</script>" }],
    ours: [{ ms: 1850, until_ms: 1950, pid: 4242, text: "meminfo" }],
    unread: [{ source: 2, pid: 5050, why: "the process was busy" }],
    cost: [],
    thinned_from: null,
    ...more,
  };
}
