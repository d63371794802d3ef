// A writer of HPROFs with Android's bitmaps, for tests of their pictures. Format: JAVA PROFILE 1.0.3 with
// IDs of four bytes.

const OBJECT = 2;
const BOOLEAN = 4;
const BYTE = 8;
const INT = 10;
const LONG = 11;
const WIDTHS = { [OBJECT]: 4, [BOOLEAN]: 1, [BYTE]: 1, [INT]: 4, [LONG]: 8 };

class Bytes {
  parts = [];
  u1 = (value) => this.add(1, (view) => view.setUint8(0, value));
  u2 = (value) => this.add(2, (view) => view.setUint16(0, value));
  u4 = (value) => this.add(4, (view) => view.setUint32(0, value));
  u8 = (value) => this.add(8, (view) => view.setBigUint64(0, BigInt(value)));
  add(length, set) {
    const buffer = Buffer.alloc(length);
    set(new DataView(buffer.buffer, buffer.byteOffset, length));
    this.parts.push(buffer);
    return this;
  }
  raw(bytes) {
    this.parts.push(Buffer.from(bytes));
    return this;
  }
  value(type, value) {
    const width = WIDTHS[type];
    return width === 1 ? this.u1(value) : width === 4 ? this.u4(value) : this.u8(value);
  }
  done = () => Buffer.concat(this.parts);
}

/**
 * Returns an HPROF with one bitmap for each of `bitmaps`: { width, height, density, buffer } with pixels in
 * the Java heap, or { width, height, file } with an image file as `am dumpheap -b` adds it.
 */
export function bitmapHprof(bitmaps) {
  const records = new Bytes();
  const heap = new Bytes();
  let last = 0x1000;
  const fresh = () => (last += 16);
  const strings = new Map();
  const record = (tag, body) => records.u1(tag).u4(0).u4(body.length).raw(body);
  const string = (text) => {
    if (!strings.has(text)) {
      strings.set(text, fresh());
      record(1, new Bytes().u4(strings.get(text)).raw(Buffer.from(text)).done());
    }
    return strings.get(text);
  };
  let serial = 0;
  const classes = new Map();
  const newClass = (name, above, fields, statics = []) => {
    const id = fresh();
    classes.set(name, { id, fields });
    record(2, new Bytes().u4(++serial).u4(id).u4(0).u4(string(name)).done());
    return () => {
      heap.u1(0x20).u4(id).u4(0).u4(above ? classes.get(above).id : 0);
      for (let i = 0; i < 5; i++) heap.u4(0);
      heap.u4(fields.reduce((sum, [, type]) => sum + WIDTHS[type], 0)).u2(0).u2(statics.length);
      for (const [field, type, value] of statics) heap.u4(string(field)).u1(type).value(type, value());
      heap.u2(fields.length);
      for (const [field, type] of fields) heap.u4(string(field)).u1(type);
      heap.u1(5).u4(id);
    };
  };
  let data = 0;
  let list = 0;
  const dumps = [
    newClass("java.lang.Object", null, []),
    newClass("java.lang.Class", "java.lang.Object", []),
    newClass("java.lang.Object[]", "java.lang.Object", []),
    newClass("byte[][]", "java.lang.Object", []),
    newClass("byte[]", "java.lang.Object", []),
    newClass("long[]", "java.lang.Object", []),
    newClass(
      "android.graphics.Bitmap",
      "java.lang.Object",
      [["mWidth", INT], ["mHeight", INT], ["mDensity", INT], ["mBuffer", OBJECT], ["mNativePtr", LONG], ["mRequestPremultiplied", BOOLEAN]],
      [["dumpData", OBJECT, () => data]],
    ),
    newClass("android.graphics.Bitmap$DumpData", "java.lang.Object", [["count", INT], ["format", INT], ["natives", OBJECT], ["buffers", OBJECT]]),
    newClass("app.Keeper", "java.lang.Object", [], [["BITMAPS", OBJECT, () => list]]),
  ];
  const array = (type, values) => {
    const id = fresh();
    heap.u1(0x23).u4(id).u4(0).u4(values.length).u1(type);
    if (type === BYTE) heap.raw(values);
    else for (const value of values) heap.value(type, value);
    return id;
  };
  const objects = (name, values) => {
    const id = fresh();
    heap.u1(0x22).u4(id).u4(0).u4(values.length).u4(classes.get(name).id);
    for (const value of values) heap.u4(value);
    return id;
  };
  const instance = (name, values) => {
    const id = fresh();
    const { id: of, fields } = classes.get(name);
    const body = new Bytes();
    for (const [field, type] of fields) body.value(type, values[field]);
    heap.u1(0x21).u4(id).u4(0).u4(of).u4(body.done().length).raw(body.done());
    return id;
  };
  const files = [];
  const ids = bitmaps.map(({ width, height, density = 420, buffer, file }) => {
    const pointer = file ? 0xb400_0000_0000_0000n + BigInt(files.length) * 64n : 0n;
    if (file) files.push({ pointer, file });
    return instance("android.graphics.Bitmap", {
      mWidth: width,
      mHeight: height,
      mDensity: density,
      mBuffer: buffer ? array(BYTE, buffer) : 0,
      mNativePtr: pointer,
      mRequestPremultiplied: 1,
    });
  });
  list = objects("java.lang.Object[]", ids);
  if (files.length > 0) {
    data = instance("android.graphics.Bitmap$DumpData", {
      count: files.length,
      format: 1,
      natives: array(LONG, files.map(({ pointer }) => pointer)),
      // The array is longer than what is valid of it.
      buffers: objects("byte[][]", [...files.map(({ file }) => array(BYTE, file)), 0, 0]),
    });
  }
  for (const dump of dumps) dump();
  record(0x1c, heap.done());
  record(0x2c, Buffer.alloc(0));
  const head = new Bytes().raw(Buffer.from("JAVA PROFILE 1.0.3\0")).u4(4).u8(1_700_000_000_000).done();
  return { hprof: Buffer.concat([head, records.done()]), ids: ids.map((id) => `0x${id.toString(16)}`) };
}

/** Returns an HPROF with an array of `count` objects of one class, each of them alone in its slot. */
export function wideHprof(count) {
  const text = (words) => Buffer.from(words);
  const strings = ["java.lang.Object", "java.lang.Class", "java.lang.Object[]", "app.Item", "app.Keeper", "ITEMS"];
  const name = (at) => 16 * (at + 1);
  const class_ = (at) => 0x1000 + 16 * at;
  const record = (tag, body) => Buffer.concat([new Bytes().u1(tag).u4(0).u4(body.length).done(), body]);
  const list = 0x2000;
  const first = 0x10_0000;
  const heap = new Bytes();
  for (let at = 0; at < 5; at++) {
    heap.u1(0x20).u4(class_(at)).u4(0).u4(at === 0 ? 0 : class_(0));
    for (let i = 0; i < 5; i++) heap.u4(0);
    heap.u4(0).u2(0).u2(at === 4 ? 1 : 0);
    if (at === 4) heap.u4(name(5)).u1(OBJECT).u4(list);
    heap.u2(0).u1(5).u4(class_(at));
  }
  const array = Buffer.alloc(17 + 4 * count);
  array[0] = 0x22;
  array.writeUInt32BE(list, 1);
  array.writeUInt32BE(count, 9);
  array.writeUInt32BE(class_(2), 13);
  const items = Buffer.alloc(17 * count);
  for (let at = 0; at < count; at++) {
    const id = first + 16 * at;
    array.writeUInt32BE(id, 17 + 4 * at);
    items[17 * at] = 0x21;
    items.writeUInt32BE(id, 17 * at + 1);
    items.writeUInt32BE(class_(3), 17 * at + 9);
  }
  return Buffer.concat([
    text("JAVA PROFILE 1.0.3\0"),
    new Bytes().u4(4).u8(1_700_000_000_000).done(),
    ...strings.map((each, at) => record(1, Buffer.concat([new Bytes().u4(name(at)).done(), text(each)]))),
    ...[0, 1, 2, 3, 4].map((at) => record(2, new Bytes().u4(at + 1).u4(class_(at)).u4(0).u4(name(at)).done())),
    record(0x1c, Buffer.concat([heap.done(), array, items])),
    record(0x2c, Buffer.alloc(0)),
  ]);
}
