// The width of the views.

/** Minimum width of a picture, and the padding of views, in px; the style sheet has it too. */
const MIN_WIDTH = 280;
const PADDING = 40;

/** Returns the width of a picture, in px. */
export function room(): number {
  const views = document.querySelector(".explored");
  return Math.max(MIN_WIDTH, (views?.clientWidth ?? document.documentElement.clientWidth) - PADDING - 2);
}
