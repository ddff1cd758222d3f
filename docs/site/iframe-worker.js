/* Search from file://: browsers start no worker from a file there, so its script runs in a hidden frame instead. */
(function () {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((ready) => {
        this.frame.onload = () => this.start(String(url), ready);
      });
      document.body.appendChild(this.frame);
    }

    start(url, ready) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.answer(data));
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => ready(inside);
      inside.document.body.appendChild(script);
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then((inside) => inside.onmessage && inside.onmessage({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
