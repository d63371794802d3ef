// Keyboard in treemaps and flame graphs: the boxes are one tab stop.

/** Makes boxes one tab stop. Left and right go through all boxes, up and down to the next box above or
 * below. The first tab stop is the box that is `current`. */
export function oneTabStop(root: HTMLElement, boxes: HTMLElement[], current: HTMLElement | undefined = boxes[0]): void {
  let at = Math.max(0, current ? boxes.indexOf(current) : 0);
  boxes.forEach((box, index) => (box.tabIndex = index === at ? 0 : -1));
  const go = (to: number, focuses: boolean): void => {
    if (!boxes[to]) return;
    boxes[at]!.tabIndex = -1;
    at = to;
    boxes[at]!.tabIndex = 0;
    if (focuses) boxes[at]!.focus();
  };
  root.addEventListener("focusin", (event) => go(boxes.indexOf(event.target as HTMLElement), false));
  root.addEventListener("keydown", (event) => {
    const to = target(event.key, boxes, at);
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(to, true);
  });
}

/** Returns the index of the box that a key goes to; -1 if there is none, null for other keys. */
function target(key: string, boxes: HTMLElement[], at: number): number | null {
  if (key === "ArrowRight") return Math.min(at + 1, boxes.length - 1);
  if (key === "ArrowLeft") return Math.max(at - 1, 0);
  if (key === "Home") return 0;
  if (key === "End") return boxes.length - 1;
  const sign = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (sign === undefined) return null;
  const from = boxes[at]!;
  let nearest = -1;
  let best = Infinity;
  boxes.forEach((box, index) => {
    const down = sign * (box.offsetTop - from.offsetTop);
    const overlaps = box.offsetLeft < from.offsetLeft + from.offsetWidth && from.offsetLeft < box.offsetLeft + box.offsetWidth;
    if (down <= 0 || !overlaps) return;
    const distance = down + Math.abs(box.offsetLeft - from.offsetLeft) / 1e6;
    if (distance < best) [nearest, best] = [index, distance];
  });
  return nearest;
}
