
// Reads the trace, opens the UI when asked to (browsers let pages open windows only then), and
// posts the trace once the UI answers. It answers PING with PONG when it is ready to listen.
'use strict';
(() => {
  const offer = JSON.parse(document.getElementById('offer').textContent);
  const button = document.getElementById('open');
  const state = document.getElementById('state');
  document.getElementById('what').textContent = offer.title;
  let buffer = null;

  const read = async () => {
    const answer = await fetch(offer.file, { cache: 'no-store' });
    if (!answer.ok) throw new Error('the server answered ' + answer.status);
    buffer = await answer.arrayBuffer();
    if (buffer.byteLength !== offer.bytes) throw new Error('the trace is incomplete');
    button.disabled = false;
    state.textContent = 'ready';
  };

  button.addEventListener('click', () => {
    const ui = window.open(offer.ui);
    if (!ui) {
      state.textContent = 'the browser blocked the window; allow pop-ups for this page';
      return;
    }
    state.textContent = 'waiting for the UI …';
    const ping = setInterval(() => ui.postMessage('PING', offer.ui), 100);
    const listen = (message) => {
      if (message.source !== ui || message.origin !== offer.ui || message.data !== 'PONG') return;
      clearInterval(ping);
      window.removeEventListener('message', listen);
      const perfetto = { buffer, title: offer.title, fileName: offer.title };
      ui.postMessage({ perfetto }, offer.ui);
      state.textContent = 'the UI has the trace; you can close this page';
    };
    window.addEventListener('message', listen);
  });

  read().catch((error) => {
    state.textContent = 'cannot read the trace: ' + error.message;
  });
})();
