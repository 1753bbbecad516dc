// What programs of users may write, in TypeScript: tests/package compiles it.
import type { Tensor } from "dlpack-web";
import { type Lifecycle, type RenderProps, type Tensors, widget } from "dlpack-web-page/widget";
import { joined, overPort, type Received, type RemoteTensor, Wire } from "dlpack-web-page/wire";

/** Whether two types are the same. */
function same<A, B>(_: [A] extends [B] ? ([B] extends [A] ? true : false) : false): void {}

export function wires(tensor: Tensor<"float32">, channel: MessagePort): void {
  const wire = new Wire({
    send: (header, payload) =>
      void same<ReturnType<typeof joined>["buffer"], ArrayBuffer>(
        (joined(header, payload).length > 0) as true,
      ),
    ontensor: (received: Received) => void same<typeof received.tensor, Tensor>(true),
  });
  const remote: RemoteTensor = wire.send("x", tensor);
  same<typeof remote.ready, Promise<void>>(true);
  same<ReturnType<typeof overPort>, Wire>(true);
  overPort(channel).connect();
  // @ts-expect-error: no such option
  overPort(channel, { timout: 3 });
}

export const ofAnAuthor: () => Lifecycle = widget({
  initialize({ model, tensors }) {
    same<typeof tensors, Tensors>(true);
    const found: Tensor | undefined = tensors.get("x");
    model.set("size", found?.size);
    model.save_changes();
    return tensors.watch("x", (x) => void same<typeof x, Tensor | undefined>(true));
  },
  async render({ model, tensors }: RenderProps) {
    const label: string = model.get("label");
    tensors.watch(label, async () => {});
    // @ts-expect-error: a name and a function
    tensors.watch(label);
    // @ts-expect-error: only Python sets them
    tensors.set("x", undefined);
  },
});
export const made = [widget(async () => ({ render() {} })), widget({})];
// @ts-expect-error: misspelt
widget({ reander() {} });
// @ts-expect-error: anywidget calls functions alone
widget({ render: () => 3 });

/** As `@anywidget/types` declares its model. */
interface OfAnywidget<T> {
  get<K extends keyof T>(key: K): T[K];
  set<K extends keyof T>(key: K, value: T[K]): void;
  save_changes(): void;
}
widget({
  render({ model }: { model: OfAnywidget<{ label: string }> }) {
    same<ReturnType<typeof model.get<"label">>, string>(true);
  },
});
