// Theme switch, read-outs under the pointer, and time cursors of plots that follow a replay.
"use strict";
(() => {
  const root = document.documentElement, button = document.querySelector(".theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = (name) => {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "light" : "dark";
    document.dispatchEvent(new CustomEvent("costate-theme"));
  };
  button.onclick = () => apply(root.dataset.theme === "dark" ? "light" : "dark");
  dark.addEventListener("change", () => apply(dark.matches ? "dark" : "light"));
  apply(dark.matches ? "dark" : "light");

  const number = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e7 || Math.abs(x) < 1e-4 ? x.toExponential(2) : String(Number(x.toPrecision(4))));

  document.querySelectorAll("figure.plot").forEach((figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent), svg = figure.querySelector("svg");
    const cursor = svg.querySelector(".cursor"), tip = figure.querySelector(".tip");
    const toX = (x) => data.left + (x - data.low) / ((data.high - data.low) || 1) * data.width;
    const put = (x) => { cursor.setAttribute("x1", toX(x)); cursor.setAttribute("x2", toX(x)); cursor.removeAttribute("visibility"); };
    svg.onpointermove = (event) => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * data.total;
      const value = data.low + (x - data.left) / data.width * (data.high - data.low);
      let k = 0;
      data.x.forEach((v, i) => { if (Math.abs(v - value) < Math.abs(data.x[k] - value)) k = i; });
      put(data.x[k]);
      tip.textContent = `${data.label} ${number(data.x[k])}   ` +
        data.series.map((s) => `${s.name} ${s.y[k] === null ? "-" : number(s.y[k])}`).join("   ");
    };
    svg.onpointerleave = () => { cursor.setAttribute("visibility", "hidden"); tip.textContent = "\u00A0"; };
    if (figure.dataset.follow) document.addEventListener("costate-time", (event) => {
      if (event.detail.replay === figure.dataset.follow) put(event.detail.time);
    });
  });
})();
