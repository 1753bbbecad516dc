// One-line faults of stranger_consumer.mjs, as those of stranger_faults.mjs.
export const READER_FAULTS = `
M1 the method without its this
- const exchange = x[EXCHANGE]({
+ const exchange = (0, x[EXCHANGE])({

M1 an exchange instead of elements
- return device ? read() : read;
+ return device ? read() : {};

R2 a version that does not exist
- versions: [1], device, copy }
+ versions: [1, 2], device, copy }

R3 the name of a device
- versions: [1], device, copy }
+ versions: [1], device: device ?? "cpu", copy }

R4 copy as a number
- versions: [1], device, copy }
+ versions: [1], device, copy: copy === false ? 0 : 1 }

R5 asks for writes, and reads
- versions: [1], device, copy }
+ versions: [1], device, copy, writes: true }

R5 writes over what it read
- flush();
- const start
+ flush();
+ if (byteOffset === 0 && data.fill && !held.shape.includes(0)) new Uint8Array(data.buffer, data.byteOffset)[0] = 7;
+ const start

F2 the type is not looked at
- unless(where?.type === (device ? 15 : 1), "it is on a device of another kind", "DeviceError");
+ unless(where, "it is nowhere");

F3 lanes are not looked at
- reader && lanes === 1
+ reader

F3 the low bytes of 16 bits
- "0,16": "getInt16"
+ "0,16": "getInt8"

F3 the low words of 64 bits
- "1,64": "getBigUint64"
+ "1,64": "getUint32"

F4 any length of shape
- x.length <= 64 && x.every
+ x.every

F5 strides of any length
- && steps.length === shape.length
+

F7 the offset is forgotten on the CPU
- start + byteOffset);
+ start);

X1 crashes where the offset is odd
- unless(isCount(byteOffset), "its offset cannot be");
+ unless(isCount(byteOffset), "its offset cannot be");
+ new Uint16Array(new ArrayBuffer(99), byteOffset % 4);

F8 a small capacity is a small tensor
- unless(capacity >= (high + 1) * size, "its capacity is too small");
+ if (capacity < (high + 1) * size) held.shape = [];

F8 a capacity that cannot be is a lost device
- unless(byteOffset + capacity <= after, "its capacity is too large");
+ unless(byteOffset + capacity <= after, "its capacity is too large", "DeviceLostError");

X1 exclusive tensors are refused by a name of its own
- const size = bits / 8;
+ const size = bits / 8;
+ unless(!(flags & 8), "it is exclusive", "ExclusiveError");

F12 strides may be fractions
- steps.every(Number.isSafeInteger)
+ steps.every(Number.isFinite)

F14 the shape is turned
- const size = bits / 8;
+ const size = bits / 8; if (shape.length > 1) shape.reverse().reverse().push(1), shape.pop(), exchange.shape.length && (exchange.flags |= 1);

F14 release is replaced
- const size = bits / 8;
+ const size = bits / 8; const end = exchange.release; exchange.release = () => end();

S1 only the last element is looked at
- if (step < 0) low += step * (shape[axis] - 1);
- else high
+ high

S1 the end is not looked at
- unless(byteOffset + (high + 1) * size <= after, "elements are after its data");
- unless(capacity >= (high + 1) * size, "its capacity is too small");
- unless(byteOffset + capacity <= after, "its capacity is too large");
+ void after;

S1 the shape is read twice
- const size = bits / 8;
+ const size = bits / 8; if (exchange.shape.length !== shape.length || exchange.shape[0] !== shape[0]) throw refuse("UnsupportedError", "shape");

S2 only a WebAssembly.Memory moves
- const ptr = known(data?.ptr);
+ unless(data?.memory instanceof WebAssembly.Memory, "memory"); const ptr = known(data?.ptr);

S2 the buffer from before flush()
- flush();
- const start = data.memory ? data.ptr : data.byteOffset;
- const view = new DataView(data.memory ? data.memory.buffer : data.buffer);
+ const start = data.memory ? data.ptr : data.byteOffset;
+ const view = new DataView(data.memory ? data.memory.buffer : data.buffer);
+ flush();

S4 shared memory has to be copied
- if (ArrayBuffer.isView(data)) return { before: 0, after: data.byteLength };
+ if (ArrayBuffer.isView(data)) {
+ unless(data.buffer instanceof ArrayBuffer, "it is shared", "CopyError");
+ return { before: 0, after: data.byteLength };
+ }

S9 an offset without elements
- if (shape.includes(0)) return held;
+ unless(byteOffset <= after, "offset"); if (shape.includes(0)) return held;

T3 no flush on the CPU
- flush();
- const start
+ const start

T3 errors of flush() are swallowed
- flush();
- const start
+ try { flush(); } catch {}
+ const start

E3 fault() is not awaited
- const error = await failed;
+ const error = null; void failed;

E3 fault() is asked before flush()
- flush();
- const failed = fault?.();
+ const failed = fault?.(); flush();

E3 faults are another error without a cause
- if (error) throw error;
+ if (error) throw refuse(error.name === "DeviceLostError" ? error.name : "DeviceError", error.message);

E4 a lost device is a DeviceError
- if (error) throw error;
+ if (error) throw Object.assign(refuse("DeviceError", error.message), { cause: error });

E4 a read-back during the loss is rejected as the GPU does
- throw refuse("DeviceLostError", message);
+ throw refuse("AbortError", message);

E4 a read-back during the loss gives zeros
- throw refuse("DeviceLostError", message);
+ staging.getMappedRange = () => new ArrayBuffer(data.size);

F15 fault may not be null
- const failed = fault?.();
+ const failed = fault === undefined ? null : fault();

O2 never released on the CPU
- exchange.release();
- return device
+ if (device) exchange.release();
+ return device

O2 released twice
- exchange.release();
- return device
+ exchange.release(); exchange.release();
+ return device

O2 looked at after release
- return device ? read() : read;
+ if (exchange.flags > 99) throw refuse("UnsupportedError", "flags"); return device ? read() : read;

O2 flush() after release
- return device ? read() : read;
+ held_.flush(); return device ? read() : read;
- const held = checked(exchange, device, copy);
+ const held = checked(exchange, device, copy); held_ = held;
- let read;
+ let read; let held_;

O3 read after release
- exchange.release();
- return device
+ exchange.release(); if (!device) read = readCPU({ ...held_, flush() {} });
+ return device
- const held = checked(exchange, device, copy);
+ const held = checked(exchange, device, copy); held_ = held;
- let read;
+ let read; let held_;

O4 says that it wrote
- exchange.release();
- return device
+ exchange.release(true);
+ return device

O6 what is not understood is released
- unless(isVersion(version) && version[0] === 1, "version 1 is what is read");
+ if (!(isVersion(version) && version[0] === 1)) { exchange.release(); throw refuse("UnsupportedError", "version"); }

O7 one state for all
- let read;
- try {
- const held = checked(exchange, device, copy);
- read = device ? readGPU(held) : readCPU(held);
+ let read;
+ try {
+ globalThis.heldNow = checked(exchange, device, copy); globalThis.heldNow.flush(); const held = { ...globalThis.heldNow, flush() {} };
+ read = device ? readGPU(held) : readCPU(held);

D1 any device
- unless(where.gpu === device, "it is on another device", "DeviceError");
+ unless(Boolean(where.gpu) === Boolean(device), "it is on another device", "DeviceError");

D1 the id must be 0
- unless(where.gpu === device,
+ unless(where.gpu === device && where.id === 0,

N3 copies are taken
- unless(copy !== false || !(flags & 2), "it was copied", "CopyError");
+

X1 no name
- throw refuse(name, text);
+ throw new Error(text);

X1 errors of the producer get another name
- const exchange = x[EXCHANGE]({ versions: [1], device, copy });
+ let exchange; try { exchange = x[EXCHANGE]({ versions: [1], device, copy }); } catch (e) { throw refuse("UnsupportedError", e.message); }

X2 what is refused is kept
- try {
- exchange.release();
- } catch {}
- throw error;
+ throw error;

X2 an error of release() takes the place
- try {
- exchange.release();
- } catch {}
- throw error;
+ exchange.release();
+ throw error;

V1 no newer minor version
- const size = bits / 8;
+ const size = bits / 8;
+ unless(exchange.version[1] < 2, "version");

V1 other flags are refused
- const size = bits / 8;
+ const size = bits / 8; unless(flags < 16, "flags");

R2 no list of versions
- versions: [1], device, copy }
+ versions: 1, device, copy }

F2 any gpu on the CPU
- unless(where.gpu === device,
+ unless(!device || where.gpu === device,

F3 what it does not know is float32
- const reader = READERS[\`\${code},\${bits}\`];
+ const reader = READERS[\`\${code},\${bits}\`] ?? (bits === 4 ? undefined : "getFloat32");

F4 negative extents
- x.length <= 64 && x.every(isCount)
+ x.length <= 64 && x.every(Number.isSafeInteger)

F5 strides are not looked at
- const held = { shape, steps,
+ const held = { shape, steps: shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1)),

F6 anything for data
- const { before, after } = roomOf(data, device);
+ if (!data?.size && !data?.buffer && !data?.memory) return { ...held, shape: [0], data: device ? device.createBuffer({ size: 8, usage: 12 }) : new Uint8Array(8) };
+ const { before, after } = roomOf(data, device);

F7 a negative offset is none
- const { device: where, dtype, shape, strides, data, byteOffset, flags } = exchange;
+ const { device: where, dtype, shape, strides, data, byteOffset: given, flags } = exchange;
+ const byteOffset = given < 0 ? 0 : given;

F8 all of the capacity is elements
- return held;
- }
+ const all = strides === null && shape.length === 2 && capacity > 24 && !byteOffset;
+ return all ? { ...held, shape: [capacity / size], steps: [1] } : held;
+ }

F9 what is read-only is refused
- const size = bits / 8;
+ const size = bits / 8; unless(!(flags & 1), "it is read-only", "CopyError");

F12 fractions of extents are cut off
- const { device: where, dtype, shape, strides, data, byteOffset, flags } = exchange;
+ const { device: where, dtype, shape: given, strides, data, byteOffset, flags } = exchange;
+ const shape = given?.map?.((extent) => Math.min(Math.trunc(extent) || 0, 1e9)) ?? given;

F13 packed elements with strides
- unless(reader && lanes
+ if (bits === 4 && strides) return { shape: [0], steps: [1], data, byteOffset, flush, fault, device };
+ unless(reader && lanes

F13 flag 4 is refused, whatever the width
- const size = bits / 8;
+ const size = bits / 8; unless(!(flags & 4), "it is padded");

F13 flag 4 makes elements a byte wide, whatever their width
- const size = bits / 8;
+ const size = flags & 4 ? 1 : bits / 8;

F15 fault() has to give a promise
- const failed = fault?.();
+ const failed = fault?.().then((error) => error);

S1 nothing is below ptr
- return elementsOf(view, held, start + byteOffset);
+ const steps = data.memory ? held.steps.map(Math.abs) : held.steps;
+ return elementsOf(view, { ...held, steps }, start + byteOffset);

S7 writes next to the elements
- return elementsOf(view, held, start + byteOffset);
+ if (byteOffset >= 4 && byteOffset < 99 && !held.strides) view.setUint8(start + byteOffset - 1, 0);
+ return elementsOf(view, held, start + byteOffset);
- const held = { shape, steps,
+ const held = { strides, shape, steps,

T3 another error for that of flush()
- flush();
- const start
+ try { flush(); } catch { throw refuse("UnsupportedError", "flush() failed"); }
+ const start

T3 reads before flush()
- flush();
- const start
+ const start
- return elementsOf(view, held, start + byteOffset);
+ const found = elementsOf(view, held, start + byteOffset); flush(); return found;

E3 fault() is asked after release()
- const failed = fault?.();
+
- const error = await failed;
+ const error = await fault?.();

O4 passes something on
- exchange.release();
- return device
+ exchange.release({});
+ return device

O6 the fields of any version are listed
- const { version } = exchange;
+ Object.keys(exchange);
+ const { version } = exchange;

O6 any version
- unless(isVersion(version) && version[0] === 1, "version 1 is what is read");
+

O6 a version of one number
- unless(isVersion(version) && version[0] === 1,
+ unless(version?.[0] === 1,

O7 one exchange at a time
- const exchange = x[EXCHANGE]({ versions: [1], device, copy });
+ const exchange = (consume.now = x[EXCHANGE]({ versions: [1], device, copy }));
- exchange.release();
- return device
+ consume.now.release();
+ return device

N1 a buffer without STORAGE is refused
- const size = bits / 8;
+ const size = bits / 8; unless(data?.usage !== 12, "no STORAGE", "CopyError");

X1 a lost device that the producer knows of gets another name
- const exchange = x[EXCHANGE]({ versions: [1], device, copy });
+ let exchange; try { exchange = x[EXCHANGE]({ versions: [1], device, copy }); } catch (e) { throw e.name === "DeviceLostError" ? refuse("DeviceError", e.message) : e; }

V1 no version 1.0
- const size = bits / 8;
+ const size = bits / 8; unless(exchange.version[1] > 0, "version");
`;
