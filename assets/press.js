/* A press counts where it began: an answer that comes between down and up may move a button away
   under a still pointer, and the browser then clicks nothing. */
(() => {
  const STILL_PX = 8;
  let press = null;

  function placeOf(button) {
    const { left, top } = button.getBoundingClientRect();
    return `${left} ${top}`;
  }

  document.addEventListener("pointerdown", (event) => {
    const button = event.button === 0 && event.target.closest?.("button");
    const { clientX: x, clientY: y } = event;
    press = button ? { button, place: placeOf(button), x, y } : null;
  }, true);

  document.addEventListener("click", (event) => {
    const began = press;
    press = null;
    if (!began || !event.isTrusted || !event.detail || began.button.contains(event.target)) return;
    const { button, place, x, y } = began;
    const isStill = Math.hypot(event.clientX - x, event.clientY - y) < STILL_PX;
    if (!isStill || !button.isConnected || placeOf(button) === place) return;
    event.stopPropagation(); // it would go to what holds both, the button and what lies there now
    button.click();
  }, true);
})();
