import { shared } from "./shared.js";

let warned = false;

/** From now on, tensors that are forgotten instead of released are released, and complained of. */
export function watchForLeaks(): void {
  shared.net ??= new FinalizationRegistry(({ storage, handle, label }) => {
    shared.live--;
    storage.release(handle);
    if (warned) return;
    warned = true;
    console.warn(
      `dlpack-web: ${label} was garbage-collected without release(). Its memory was freed late, ` +
        "without debug: true never. Further ones are freed without a word.",
    );
  });
}
