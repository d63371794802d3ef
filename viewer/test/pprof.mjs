// Reads the values of each stack from a gzipped pprof. An independent oracle, which does not share code
// with the writer of the report.

import { gunzipSync } from "node:zlib";

/** Fields of a protobuf message: [number, value or bytes]. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    if ((key & 7) === 0) yield [key >> 3, varint()];
    else if ((key & 7) === 2) {
      const length = Number(varint());
      yield [key >> 3, bytes.subarray(at, (at += length))];
    } else throw new Error(`wire type ${key & 7}`);
  }
}

function numbers(value) {
  if (typeof value === "bigint") return [value];
  const list = [];
  let number = 0n;
  let shift = 0n;
  for (const byte of value) {
    number |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte < 0x80) {
      list.push(number);
      number = 0n;
      shift = 0n;
    }
  }
  return list;
}

/** {types: [name], samples: [{stack: [names, outermost first], values}]}. */
export function readPprof(gzipped) {
  const strings = [];
  const types = [];
  const samples = [];
  const locations = new Map();
  const functions = new Map();
  for (const [field, value] of fields(gunzipSync(gzipped))) {
    if (field === 6) strings.push(Buffer.from(value).toString("utf8"));
    else if (field === 1) types.push(Number(new Map(fields(value)).get(1) ?? 0n));
    else if (field === 2) {
      const sample = { locations: [], values: [] };
      for (const [part, part_value] of fields(value)) {
        if (part === 1) sample.locations.push(...numbers(part_value));
        if (part === 2) sample.values.push(...numbers(part_value).map((each) => Number(BigInt.asIntN(64, each))));
      }
      samples.push(sample);
    } else if (field === 4) {
      let id = 0n;
      const lines = [];
      for (const [part, part_value] of fields(value)) {
        if (part === 1) id = part_value;
        if (part === 4) lines.push(new Map(fields(part_value)).get(1) ?? 0n);
      }
      locations.set(id, lines);
    } else if (field === 5) {
      const parts = new Map(fields(value));
      functions.set(parts.get(1), Number(parts.get(2) ?? 0n));
    }
  }
  return {
    types: types.map((type) => strings[type]),
    samples: samples.map(({ locations: ids, values }) => ({
      stack: ids.flatMap((id) => locations.get(id).map((line) => strings[functions.get(line)])).reverse(),
      values,
    })),
  };
}
