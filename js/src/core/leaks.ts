import { type Hold, shared } from "./realm.js";
import type { Tensor } from "./tensor.js";

let warned = false;
let quiet: FinalizationRegistry<Hold> | undefined;

/**
 * Lets go of this one tensor when it is garbage-collected: for tensors that somebody makes only to
 * pass them on, of which nobody has a name to release them by.
 */
export function watchOver(tensor: Tensor): void {
  if (shared.net !== null || tensor._watcher !== null) return;
  quiet ??= new FinalizationRegistry(({ storage, handle }) => {
    shared.live--;
    storage.release(handle);
  });
  tensor._watcher = quiet;
  tensor._watch(quiet);
}

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
