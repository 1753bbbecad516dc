// One-line faults of stranger.mjs, each of which the suite finds by the rule that stands before it. A
// fault is the text that it replaces, without indentation, and the text in its place.

/** On both devices, or on the CPU alone. */
export const FAULTS = `
M1 one object for all calls
- return {
- version
+ return this.only ??= {
+ version

M2 a promise
- [EXCHANGE](request) {
+ async [EXCHANGE](request) {

M3 rejects an aborted request with an error of its own
- signal?.throwIfAborted();
- if (device
+ if (signal?.aborted) throw new Error("aborted");
+ if (device

M3 a hold that an aborted request leaves
- async [ASYNC](request) {
+ async [ASYNC](request) { if (request?.signal?.aborted) this.block.holds++;

M3 no copies where it may wait
- async [ASYNC](request) {
+ async [ASYNC](request) { if (request?.copy) throw refuse("UnsupportedError", "no copies are made");

M3 nothing to write to where it may wait
- async [ASYNC](request) {
+ async [ASYNC](request) { if (request?.writes) throw refuse("UnsupportedError", "it may not be written");

R6 zeros where padding is needed
- [EXCHANGE](request) {
+ [EXCHANGE](request) { if (request?.needs?.padTo === 16) return this.owned(new Block(this.device, this.block.size), this.device);

R4 an empty copy
- copy.copyFrom(block, this.bytes, device && block.fault());
+ copy.pending = device && block.fault();

F14 the shape that the factory was given
- shape: [...shape], bytes:
+ shape, bytes:
- shape: [...this.shape]
+ shape: this.shape

S8 rounds to bfloat16
- this.block.write(bytes);
+ this.block.write(bytes.map((byte, i) => (DTYPES[dtype][1] === 32 && i % 4 < 2 ? 0 : byte)));

S8 seven bits of eight
- this.block.write(bytes);
+ this.block.write(bytes.map((byte) => (DTYPES[dtype][1] === 8 ? byte & 127 : byte)));

R4 hands out one cached copy
- const copy = new Block(device, block.size);
+ const copy = (this.cache ??= new Block(device, block.size)); copy.holds++;

R4 copies are not made
- return copy ? this.copied()
+ return false ? this.copied()

R4 a copy without flag 2
- this.described(block, device, 2)
+ this.described(block, device, 0)

R4 copy: false is copied
- return copy ? this.copied()
+ return copy !== undefined ? this.copied()

R7 null is a request
- if (typeof request !== "object" || request === null) throw new TypeError("no object");
+ request ??= {};

R7 devices by name
- if (typeof device !== "object") throw
+ if (typeof device === "number") throw

S6 reused memory is not cleared
- this.clear();
+

T5 a write 1 ms after handing out
- described(block, device, flags) {
+ described(block, device, flags) { setTimeout(() => block.write(new Uint8Array(8).fill(9)), 1);

O1 clears at the first release
- held = false;
+ held = false; block.clear();

O1 a hold that is not counted
- this.holds++;
+

O1 the memory goes 5 ms after the user's release
- this.block.drop();
- }
-
- /** Checks
+ this.block.drop(); setTimeout(() => this.block.holds > 0 && this.block.clear(), 5);
+ }
+
+ /** Checks

O2 release counts each call
- if (!held) return;
+

O2 release throws the second time
- if (!held) return;
+ if (!held) throw new Error("again");

O2 release does nothing
- if (!held) return;
+ return;

O2 copies keep a hold on their tensor
- const { block, device } = this;
- const copy
+ const { block, device } = this; block.take();
+ const copy

X2 a hold is left of each refused request
- read(request = {}) {
+ read(request = {}) { this.block.holds++; const done = () => this.block.holds--; queueMicrotask(() => {}); if (request?.versions?.[0] !== 99) done();

X3 versions before the device
- if (typeof device !== "object") throw
+ if (versions.includes(1) && typeof device !== "object") throw

X3 what is gone before the versions
- const { versions = [1]
+ if (this.block.holds <= 0) throw refuse("ReleasedError", "gone"); const { versions = [1]

R2 an empty list is enough
- !versions.includes(1)
+ versions.length > 0 && !versions.includes(1)

F2 no gpu on the CPU
- gpu: device }
+ gpu: device ?? undefined }

F14 capacity is taken back
- this.block.drop();
- }
-
- /** Checks
+ this.block.drop(); this.last && (this.last.capacity = 0);
+ }
+
+ /** Checks
- return {
- version
+ return this.last = {
+ version

R4 copies clear what they copy
- return this.owned(copy, device);
+ block.clear(); return this.owned(copy, device);

T5 writes: true clears
- return copy ? this.copied()
+ if (request?.writes) this.block.clear(); return copy ? this.copied()

R5 writes: true gives read-only memory
- return copy ? this.copied()
+ if (request?.writes) return this.described(this.block, this.device, 1); return copy ? this.copied()

R5 writing is refused by another name
- return copy ? this.copied()
+ if (request?.writes) throw new Error("no"); return copy ? this.copied()

R4 writes: true gives a copy without flag 2
- return copy ? this.copied()
+ if (request?.writes) { const { data } = this.copied(); return { ...this.described(this.block, this.device, 0), data }; } return copy ? this.copied()

R4 writes: true with copy: false gives a copy
- return copy ? this.copied()
+ if (request?.writes) return this.copied(); return copy ? this.copied()

R6 needs are refused
- return copy ? this.copied()
+ if (request?.needs?.padTo > 15) throw refuse("UnsupportedError", "no"); return copy ? this.copied()

S5 padTo is answered without memory
- return copy ? this.copied()
+ if (request?.needs?.padTo) return { ...this.described(this.block, this.device, 0), capacity: up(this.block.size, request.needs.padTo) }; return copy ? this.copied()

X1 what is gone has another name
- "ReleasedError", "it was released");
- if (this.block.lostAs
+ "GoneError", "it was released");
+ if (this.block.lostAs

O1 the memory is idle after the user's release
- this.block.drop();
- }
-
- /** Checks
+ this.block.pool.push(this.block.data);
+ }
+
+ /** Checks

T5 any release gives the memory back
- if (--this.holds === 0) this.pool.push
+ this.holds--; this.pool.push

X2 a malformed request leaves a hold
- read(request = {}) {
- if (typeof request
+ read(request = {}) {
+ if (typeof request === 'number') this.block.holds++;
+ if (typeof request

O7 holds are counted from before the request is read
- const { device, copy } = this.read(request);
+ const { holds } = this.block; const { device, copy } = this.read(request); this.block.holds = holds;

F11 release needs its this
- release: ending(block)
+ release() { this.done ??= ending(block); this.done(); }
`;

/** On a GPU, where the first of each rule is tried: those that do not wait. */
export const ON_GPU = `
E2 a fault that needs this
- fault: device ? () => block.fault() : null
+ fault: device ? function () { return this.flags < 0 ? null : block.fault(); } : null

E2 a fault that is not reported after release()
- fault: device ? () => block.fault() : null
+ fault: device ? () => new Promise((resolve) => { setTimeout(() => block.holds > 1 && resolve(block.fault()), 5); }) : null

M3 an abort while it reads back is ignored
- signal?.throwIfAborted();
- if (error)
+ if (error)

M3 an abort before is ignored
- signal?.throwIfAborted();
- if (device
+ if (device

M3 aborted after it was fulfilled, the hold ends
- return this.owned(host, null);
+ const exchange = this.owned(host, null); signal?.addEventListener("abort", exchange.release); return exchange;

M3 aborted reading back leaves a hold
- block.drop();
- }
- }
-
- /** On a GPU
+ if (!signal?.aborted) block.drop();
+ }
+ }
+
+ /** On a GPU

R3 it never reads back to the end
- await staging.mapAsync(MAP).catch(async (error) => {
+ await new Promise(() => {}).catch(async (error) => {

R4 reading back ignores copy: false
- if (copy === false) throw refuse("CopyError", "reading
+ if (copy === null) throw refuse("CopyError", "reading

R4 what was read back has no flag 2
- return this.owned(host, null);
+ const exchange = this.owned(host, null); exchange.flags = 0; return exchange;

R4 one cached copy for who reads back
- const host = new Block(null, up(this.bytes, 16) + 16);
+ const host = (this.host ??= new Block(null, up(this.bytes, 16) + 16)); host.holds++;

R4 uploading ignores copy: false
- if (copy === false) throw refuse("CopyError", "uploading is a copy");
+

O2 what was read back never ends its hold
- return this.owned(host, null);
+ block.take(); return this.owned(host, null);

X2 a hold after a refused read-back
- if (this.device) throw refuse("DeviceError", "it has to
+ if (this.device) this.block.holds++;
+ if (this.device) throw refuse("DeviceError", "it has to

X2 a hold after a GPU copy that failed
- const { block, device } = this;
- const copy = new Block(device, block.size);
+ const { block, device } = this; block.take();
+ const copy = new Block(device, block.size); block.drop();

X2 a hold after copies that are refused on the GPU
- const { device, copy } = this.read(request);
+ const { device, copy } = this.read(request); if (copy && this.device) { this.block.holds++; throw refuse("UnsupportedError", "no"); }

X2 a hold after a request that the read-back refuses
- if (copy === false) throw refuse("CopyError", "reading
+ if (copy === false) this.block.holds++; if (copy === false) throw refuse("CopyError", "reading

S6 GPU memory is not cleared
- this.clear();
+ if (!device) this.clear();

T1 flush is a promise
- flags,
- flush,
+ flags,
+ flush: device ? async () => {} : flush,

E1 a known fault is not thrown
- if (this.block.error) throw this.block.error;
+

E1 a known fault is thrown by a name of X1
- if (this.block.error) throw this.block.error;
+ if (this.block.error) throw refuse("UnsupportedError", "it failed");

E2 fault() is always null
- fault: device ? () => block.fault() : null
+ fault: device ? () => null : null

E2 fault() forgets what it knows
- if (this.error) return Promise.resolve(this.error);
+

E2 fault() rejects
- return this.pending?.then((error) => this.lostAs ?? error) ?? null;
+ return this.pending?.then((error) => { if (error) throw error; return null; }) ?? null;

E2 fault() throws what it knows
- if (this.error) return Promise.resolve(this.error);
+ if (this.error) throw this.error;

E2 fault() gives a text
- return this.error;
- })();
+ return this.error && String(this.error);
+ })();

E4 a lost device is not refused
- if (this.block.lostAs) throw this.block.lostAs;
+

E4 a lost device is refused by another name
- refuse("DeviceLostError", "the device is lost")
+ refuse("DeviceError", "the device is lost")

E4 fault() does not report the loss
- if (this.lostAs) return Promise.resolve(this.lostAs);
+

E4 release() throws once the device is lost
- held = false;
+ held = false; if (block.lostAs) throw block.lostAs;

E4 flush() throws once the device is lost
- flags,
- flush,
+ flags,
+ flush: () => { if (block.lostAs) throw block.lostAs; },

R3 null is the tensor's own device
- if (device !== this.device) {
+ if (device && device !== this.device) {

R4 no copies on the GPU
- return copy ? this.copied()
+ return copy && !this.device ? this.copied()

M3 the method throws
- async [ASYNC](request) {
+ [ASYNC](request) {

M3 rejects with an error of its own
- signal?.throwIfAborted();
- if (error)
+ if (signal?.aborted) throw new Error("aborted"); if (error)

M3 only a request that is aborted at once is
- signal?.throwIfAborted();
- if (error)
+ if (now) signal?.throwIfAborted(); if (error)
- block.take();
- const staging
+ block.take(); let now = true; setTimeout(() => { now = false; }, 0);
+ const staging

R4 the copy flag is dropped
- return this[EXCHANGE](request);
- if (device) throw
+ return this[EXCHANGE]({ ...request, copy: undefined });
+ if (device) throw

R3 the read-back is one of zeros
- host.write(new Uint8Array(staging
+ host.write(new Uint8Array(4)); void (new Uint8Array(staging

O4 reads back what it read before
- host.write(new Uint8Array(staging.getMappedRange(), 0, this.bytes));
+ host.write((this.seen ??= new Uint8Array(staging.getMappedRange(), 0, this.bytes).slice()));

S6 what is read back is padded by others
- this.clear();
+ if (device || Block.dirty) this.clear();

E2 the error itself
- if (this.error) return Promise.resolve(this.error);
+ if (this.error) return this.error;

E2 never settles
- const error = await failed.catch((lost) => lost);
+ const error = await failed.catch((lost) => lost); if (error) await new Promise(() => {});

R7 rejects by another name
- const { device, copy, signal } = this.read(request);
+ const { device, copy, signal } = await (async () => this.read(request))().catch((error) => {
+ throw error.name === "TypeError" ? refuse("UnsupportedError", "no object") : error;
+ });

X2 a hold after a fault was thrown
- if (this.block.error) throw this.block.error;
+ if (this.block.error) this.block.holds++;
+ if (this.block.error) throw this.block.error;

X2 a read-back of failed work leaves a hold
- if (error) throw error;
- const host
+ if (error) { block.take(); throw error; }
+ const host

E2 fault() gives null once it is released
- if (this.error) return Promise.resolve(this.error);
+ if (this.error) return Promise.resolve().then(() => (this.holds > 1 ? this.error : null));

E1 only the first method knows of faults
- if (this.block.error) throw this.block.error;
+ if (this.block.error && !(request && 'async' in request)) throw this.block.error;
- const { device, copy, signal } = this.read(request);
+ const { device, copy, signal } = this.read(Object(request) === request ? { ...request, async: 1 } : request);
- return this[EXCHANGE](request);
- if (device) throw
+ return device !== this.device ? this[EXCHANGE](request) : copy ? this.copied() : this.described(this.block, this.device, 0);
+ if (device) throw

E4 only the first method knows of the loss
- if (this.block.lostAs) throw this.block.lostAs;
+ if (this.block.lostAs && !(request && 'async' in request)) throw this.block.lostAs;
- const { device, copy, signal } = this.read(request);
+ const { device, copy, signal } = this.read(Object(request) === request ? { ...request, async: 1 } : request);
- return this[EXCHANGE](request);
- if (device) throw
+ return device !== this.device ? this[EXCHANGE](request) : copy ? this.copied() : this.described(this.block, this.device, 0);
+ if (device) throw

E2 fault() rejects after the loss
- if (this.lostAs) return Promise.resolve(this.lostAs);
+ if (this.lostAs) return Promise.reject(this.lostAs);

E4 fault() of a lost device has another name
- if (this.lostAs) return Promise.resolve(this.lostAs);
+ if (this.lostAs) return Promise.resolve(refuse("DeviceError", "lost"));

O1 the user's release destroys the buffer
- this.released = true;
+ this.released = true; this.block.data.destroy?.(); this.block.pool = [];

X2 a rejected request leaves a hold
- async [ASYNC](request) {
+ async [ASYNC](request) {
+ if (request?.versions?.[0] === 99) this.block.holds++;

X3 the device before the versions
- if (!versions.includes(1)) throw
+ if (device !== this.device && this.device) throw refuse('DeviceError', 'elsewhere'); if (!versions.includes(1)) throw

F9 no flags where it is moved
- return this.owned(there, device);
+ return { ...this.owned(there, device), flags: undefined };

R4 moved once for all
- const there = new Block(device, this.block.size);
+ const there = (this.there ??= new Block(device, this.block.size)); there.holds++;

O2 what was moved keeps a hold
- return this.owned(there, device);
+ this.block.take(); return this.owned(there, device);

M3 a hold of the read-back ends with the tensor's
- this.released = true;
+ this.released = true; this.last?.drop();
- return this.owned(host, null);
+ this.last = host; return this.owned(host, null);

R3 another GPUDevice is answered from one's own
- if (device !== this.device) {
+ if (device === null && this.device || !this.device && device) {

R3 another GPUDevice is answered by who may wait
- if (device) throw refuse("DeviceError", "it is on its own device");
+ if (device) return this.described(this.block, this.device, 0);

R3 the CPU is answered by who may wait, from the GPU
- if (copy === false) throw refuse("CopyError", "reading
+ if (copy !== true) return this.described(this.block, this.device, 0);
+ if (copy === false) throw refuse("CopyError", "reading

E1 what failed is read back
- if (error) throw error;
- const host
+ void error;
+ const host

E2 copies of what failed are well
- copy.copyFrom(block, this.bytes, device && block.fault());
+ copy.copyFrom(block, this.bytes, null);

E4 a read-back during the loss is rejected as the GPU does
- throw block.lostAs ?? error;
+ throw error;

E4 a read-back during the loss gives zeros
- throw block.lostAs ?? error;
+ staging.getMappedRange = () => new ArrayBuffer(size);
- const error = await fault;
+ const error = block.lostAs ? null : await fault;

E4 a read-back during the loss never ends
- throw block.lostAs ?? error;
+ return new Promise(() => {});

R4 writes with copy true gives the own memory
- return copy ? this.copied()
+ if (request?.writes) return this.described(this.block, this.device, 0); return copy ? this.copied()

O1 a copy ends with the user's release
- this.released = true;
+ this.released = true; this.lastCopy?.clear();
- return this.owned(copy, device);
+ this.lastCopy = copy; return this.owned(copy, device);

X3 who may wait gets what is gone
- const { device, copy, signal } = this.read(request);
+ if (this.block.holds <= 0) return this.described(this.block, this.device, 0); const { device, copy, signal } = this.read(request);

X3 who may wait: device before versions
- const { device, copy, signal } = this.read(request);
+ if (Object(request).device && request.device !== this.device && Object(request.versions).length) throw refuse("DeviceError", "x"); const { device, copy, signal } = this.read(request);

R2 who may wait looks at the first version
- const { device, copy, signal } = this.read(request);
+ if (request?.versions?.length === 2 && request.versions[0] === 1) throw refuse("UnsupportedError", "v"); const { device, copy, signal } = this.read(request);

X2 who may wait holds what it refuses, on another device
- if (device) throw refuse("DeviceError", "it is on its own device");
+ if (device) { this.block.holds++; throw refuse("DeviceError", "it is on its own device"); }

S8 the last bytes are lost in a copy
- encoder.copyBufferToBuffer(data, 0, this.data, 0, up(size, 4));
+ encoder.copyBufferToBuffer(data, 0, this.data, 0, size - size % 4);

S8 the last bytes are lost in a read-back
- encoder.copyBufferToBuffer(block.data, 0, staging, 0, size);
+ encoder.copyBufferToBuffer(block.data, 0, staging, 0, this.bytes - this.bytes % 4);

R4 writes through who may wait are to a copy
- if (device === this.device || !this.device) return this[EXCHANGE](request);
+ if (request?.writes && !copy && device === this.device) { const e = this.copied(); e.flags = 0; return e; } if (device === this.device || !this.device) return this[EXCHANGE](request);
`;

/** Each fault of a text: its rule, what it does, and the source with it. */
export function faultsOf(source, faults) {
  const squeezed = (text) => text.replace(/^[ \t]+/gm, "");
  return faults
    .trim()
    .split("\n\n")
    .map((fault) => {
      const [head, ...lines] = fault.split("\n");
      const [id, ...what] = head.split(" ");
      let text = squeezed(source);
      while (lines.length > 0) {
        const [from, to] = ["-", "+"].map((sign) => {
          const end = lines.findIndex((line) => !line.startsWith(sign));
          const taken = lines.splice(0, end < 0 ? lines.length : end);
          return taken.map((line) => line.slice(2).trim()).join("\n");
        });
        if (text.split(from).length !== 2) throw new Error(`${head}: ${from} is not there once`);
        text = text.replace(from, () => to);
      }
      return { id, what: what.join(" "), text };
    });
}

/** What a text exports. */
export function loaded(text) {
  const names = [...text.matchAll(/^export (?:async )?(?:class|const|function) (\w+)/gm)];
  return new Function(
    `${text.replace(/^export /gm, "")}; return { ${names.map(([, name]) => name)} };`,
  )();
}
