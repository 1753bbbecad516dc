/** What is held during a call, or handed on by it. */
interface Held {
  release(): void;
}

/** The result of `use`, after which `held` is released, also if that throws. */
export function releasing<H extends Held, R>(held: H, use: (held: H) => R): R {
  try {
    return use(held);
  } finally {
    held.release();
  }
}

/** The result of `use`, which takes `held` over; if it throws, `held` is released. */
export function keeping<H extends Held, R>(held: H, use: (held: H) => R): R {
  try {
    return use(held);
  } catch (error) {
    held.release();
    throw error;
  }
}
