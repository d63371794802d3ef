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
            { function: "Level::load(std::string const&)", library: "libgame.so", per_round: { value: 245760, low: 185000, high: 308000 }, verdict: "confirmed", says: "Each iteration leaves 240 KiB more memory allocated by Level::load, and none of it is freed." },
            { function: "operator()(byte[], int)", library: "libhwui.so", per_round: { value: 20480, low: -19200, high: 60400 }, verdict: "inconclusive", says: "The change of +20 KiB per iteration is within the sampling error; 8 iterations would decide." },
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

const size = (java_bytes, native_bytes = 0, count = 1) => ({ count, java_bytes, native_bytes });
const kept = (bytes, count = 1) => ({ bytes, native_bytes: 0, count });
const table = (rows) => ({ total: rows.length, rows });
const classRow = (name, count, shallow_bytes, native_bytes, retained) => ({ name, count, shallow_bytes, native_bytes, retained: size(retained) });
const objectRow = (id, name, shallow_bytes, retained) => ({ id, name, shallow_bytes, native_bytes: 0, retained: size(retained) });
const heapFacts = (path, label = null) => ({ path, number: 1, dumps: 1, label, source: "heap-graph", version: null, process: "com.example.app", pid: 4242, time: null, reason: null, sizes: "dump", excluded: ["weak"], warnings: [] });

/** A Java heap with its answers: `store` is as src/explored/store.rs packs it. */
export function javaHeap() {
  const activity = objectRow("0x12c0", "com.example.app.MainActivity", 1000, 8_100_000);
  const bitmap = objectRow("0x12d0", "android.graphics.Bitmap", 80, 8_000_400);
  const unknown = { status: "unknown", certainty: "confirmed", reason: "" };
  const leaking = { status: "leaking", certainty: "confirmed", reason: "mDestroyed is true" };
  const object = (row, more) => ({ ...row, class: row.name, superclasses: ["java.lang.Object"], heap: "app", root: null, dominators: [], depth: 0, length: null, referrers: 1, allocated_at: [], bitmap: null, verdict: unknown, ...more });
  const byClass = [
    classRow("com.example.app.MainActivity", 3, 3000, 0, 9_000_000),
    classRow("android.graphics.Bitmap", 5, 400, 8_000_000, 8_000_400),
    classRow("byte[]", 7, 700_000, 0, 700_000),
    classRow("java.lang.String", 90, 3600, 0, 10_000),
  ];
  const nothing = { wasted_bytes: 0, groups: [] };
  const flame = { nodes: [{ above: null, name: 0, root: "sticky class", is_native: false, own_count: 3, own_bytes: 3000, count: 105, bytes: 9_000_000 }, { above: 0, name: 1, root: null, is_native: false, own_count: 5, own_bytes: 400, count: 5, bytes: 8_000_400 }], names: ["com.example.app.MainActivity", "android.graphics.Bitmap"], count: 105, bytes: 9_000_000, left_out: 0, is_folded: false };
  const step = (id, name, status, reference, suspect) => ({ id, class: name, shape: "instance", status, reason: "", reference, declared_in: null, suspect });
  const answers = {
    "kept?": { objects: 2, command: "heaptap explore dump" },
    "meta?": { step: "", heap: heapFacts("dump"), out_of_memory: null, before: null, change: null, error: null, contents: false, sql: false, objects: 120, classes: 4, roots: 2, reachable: size(1_000_000, 8_000_000, 105) },
    "classes?by=class": table(byClass),
    "classes?by=package": table([classRow("com.example.app", 3, 3000, 0, 9_000_000)]),
    "classes?by=superclass": table(byClass),
    "classes?by=heap": table([classRow("app", 105, 707_000, 8_000_000, 9_000_000)]),
    "classes?by=loader": table([]),
    "objects?": table([activity, bitmap]),
    "objects?top=": table([activity]),
    "objects?class=com.example.app.MainActivity": table([activity]),
    "objects?dominated=0x12c0": table([bitmap]),
    "objects?dominated=0x12d0": table([]),
    "object?id=0x12c0": object(activity, { verdict: leaking, root: "sticky class" }),
    "object?id=0x12d0": object(bitmap, { dominators: [activity], depth: 1 }),
    "fields?id=0x12c0": table([{ name: "mBitmap", type_name: "android.graphics.Bitmap", declared_in: null, is_static: false, value: null, object: bitmap }]),
    "fields?id=0x12d0": table([]),
    "referrers?id=0x12c0": table([]),
    "referrers?id=0x12d0": table([{ ...activity, reference: "MainActivity.mBitmap" }]),
    "path?id=0x12c0": { root: "sticky class", steps: [{ ...activity, reference: null, left_out: 0, verdict: leaking }], length: 1 },
    "path?id=0x12d0": { root: "sticky class", steps: [{ ...activity, reference: null, left_out: 0, verdict: leaking }, { ...bitmap, reference: "MainActivity.mBitmap", left_out: 0, verdict: unknown }], length: 2 },
    "holders?class=com.example.app.MainActivity": { total: 5, rows: [{ above: null, name: "java.lang.String.mContext", count: 1, root: null }, { above: 0, name: "app.Keeper.LIST", count: 1, root: "sticky class" }] },
    "treemap?": { cells: [{ ...activity, above: null, bytes: 8_100_000, own_bytes: 1000, rest: 0, rest_bytes: 0 }] },
    "flame?tree=paths": flame,
    "flame?tree=dominators": flame,
    "bitmaps?": table([]),
    "leaks?": {
      objects: 2,
      retained: kept(9_000_000, 2),
      groups_total: 1,
      groups: [
        {
          signature: "a",
          what: "destroyed Activity",
          class: "com.example.app.MainActivity",
          certainty: "confirmed",
          library: null,
          count: 2,
          retained: kept(9_000_000, 2),
          root: "the static field sInstance",
          path: [step("0x1000", "java.lang.String", "not-leaking", "mContext", true), step("0x12c0", "com.example.app.MainActivity", "leaking", null, false)],
          path_left_out: 2,
          advice: "Clear the reference in onDestroy.",
          leaks: [{ id: "0x12c0", reason: "mDestroyed is true", retained: kept(9_000_000) }],
        },
      ],
      not_analyzed: [],
    },
    "waste?": { wasted_bytes: 0, strings: nothing, arrays: nothing, bitmaps: nothing, collections: [], oversized_collections: [], sparse_arrays: [], sparse_array_bytes: 0, boxed: [], not_analyzed: [] },
  };
  return { name: "com.example.app", leaks: [{ class: "com.example.app.MainActivity", retained: 9_000_000 }], store: answers };
}

/** The same as it became of another dump: events in a list grew, a cache shrank. */
export function comparedHeap() {
  const heap = javaHeap();
  const figures = (count, shallow_bytes, native_bytes, retained_bytes) => ({ count, shallow_bytes, native_bytes, retained_bytes, retained_native_bytes: 0 });
  const row = (name, status, before, after) => ({ name, status, before: figures(...before), after: figures(...after) });
  const event = row("app.Event", "grown", [100, 2400, 0, 102_400], [180, 4320, 600_000, 184_320]);
  Object.assign(heap.store, {
    "changes?": table([event, row("byte[]", "new", [0, 0, 0, 0], [7, 700, 0, 700]), row("app.Cache", "shrunk", [9, 9000, 0, 90_000], [4, 4000, 0, 40_000])]),
    "changed-leaks?": [{ signature: "a", what: "destroyed Activity", class: "com.example.app.MainActivity", path: "", status: "new", before_count: 0, after_count: 2, before_bytes: 0, after_bytes: 9_000_000 }],
    "changed-dominators?": [{ ...row("class app.Keeper", "grown", [1, 100, 0, 102_400], [1, 100, 0, 184_320]), depth: 0 }, { ...event, depth: 1 }],
  });
  const flame = { ...heap.store["flame?tree=paths"], names: ["app.Keeper", "app.Event"] };
  heap.store["flame?tree=paths"] = flame;
  const meta = heap.store["meta?"];
  meta.before = heapFacts("before.hprof");
  meta.change = { before: figures(100, 1_048_576, 0, 0), after: figures(180, 1_572_864, 0, 0) };
  return { ...heap, compared_with: "before.hprof" };
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
