// Changes that were not saved, kept by the browser. Each tab writes a draft of its own and holds a
// lock while it lives: the drafts without one are of tabs that have ended. Nothing of them is
// shown, or thrown away, unless the reader says so.
const NAME = "dlpack-web-notebook";
const STORE = "drafts";
const MOST = 20; // drafts; beyond that the oldest go
const LARGEST = 32 << 20; // characters

const finished = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function open() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
  return await finished(request);
}

const lockOf = (id) => `${NAME}:${id}`;

export class Drafts {
  #id = crypto.randomUUID();
  #database = open();
  #turn = Promise.resolve(); // one after the other, as they were asked for

  constructor() {
    this.#database.catch(() => {}); // told by what needs it
    // Until the tab ends, however it does.
    navigator.locks.request(lockOf(this.#id), () => new Promise(() => {}));
  }

  /** Keeps this tab's notebook. Error where the browser keeps nothing. */
  write(name, text) {
    if (text.length > LARGEST) {
      const megabytes = Math.round(text.length / 1e6);
      return Promise.reject(new Error(`${megabytes} MB are too much to be kept: save the file`));
    }
    return this.#do("readwrite", (store) =>
      store.put({ id: this.#id, name, text, at: Date.now() }),
    );
  }

  /** This tab has nothing that is not saved. */
  clear() {
    return this.remove(this.#id);
  }

  remove(id) {
    return this.#do("readwrite", (store) => store.delete(id));
  }

  /** Drafts of tabs that have ended: [{ id, name, text, at }], the newest first. */
  async left() {
    const all = await this.#do("readonly", (store) => store.getAll());
    const { held, pending } = await navigator.locks.query();
    const living = new Set([...held, ...pending].map(({ name }) => name));
    const left = all.filter(({ id }) => !living.has(lockOf(id)));
    left.sort((a, b) => b.at - a.at);
    for (const { id } of left.splice(MOST)) await this.remove(id);
    return left;
  }

  #do(mode, what) {
    const done = this.#turn.then(async () => {
      const transaction = (await this.#database).transaction(STORE, mode);
      const kept = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const [result] = await Promise.all([finished(what(transaction.objectStore(STORE))), kept]);
      return result;
    });
    this.#turn = done.catch(() => {});
    return done;
  }
}
