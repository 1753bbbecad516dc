// A widget as an author writes it: it shows and reads what it is given.
import { widget } from "dlpack-web-page/widget";

export default widget({
  initialize({ model, tensors }) {
    return tensors.watch("x", async (x) => {
      if (!x) return;
      model.set("heard", [...(await x.read())]);
      model.save_changes();
    });
  },
  render({ model, el, tensors }) {
    const line = document.createElement("p");
    el.append(line);
    return tensors.watch("x", (x) => {
      line.textContent = `${model.get("label")}: ${x ? x.toString() : "nothing"}`;
    });
  },
});
