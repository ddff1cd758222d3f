// Particles, and cells of a grid, with a number each as a colour. See costate/report/particles.py for the layout of the data. Only
// frames that were computed are shown.
"use strict";
(() => {
  const { Scene, kinds, LIGHT, program, inflated, levels, colorTable, add, sub, dot } = costateScene;

  // Particles are squares that face the eye, with the light of balls; cells have no light. Shadows are looked up once per particle.
  const PLACE = `
    in vec3 position; in float value; uniform mat4 view; uniform vec3 low; uniform float unit, pixels; vec3 at;
    void put() { at = low + unit * position; gl_Position = view * vec4(at, 1.0); gl_PointSize = max(1.0, pixels / gl_Position.w); }`;
  const BALL = [`#version 300 es
    precision highp float;` + PLACE + LIGHT + `
    uniform vec3 eye; uniform float radius; uniform vec2 range; uniform sampler2D colors; out vec3 tint, towards; out float bright;
    void main() {
      put();
      towards = normalize(eye - at); bright = lit(at + 1.5 * radius * sun);
      float share = clamp((value - range.x) / (range.y - range.x), 0.0, 1.0);
      tint = texture(colors, vec2((0.5 + 255.0 * share) / 256.0, 0.5)).rgb;
    }`, `#version 300 es
    precision mediump float; in vec3 tint, towards; in float bright; uniform vec3 right, up, sunlight; uniform float square; out vec4 result;
    void main() {
      if (square > 0.5) { result = vec4(tint, 1.0); return; }
      vec2 q = vec2(2.0, -2.0) * (gl_PointCoord - 0.5);
      float inside = 1.0 - dot(q, q);
      if (inside < 0.0) discard;
      vec3 m = q.x * right + q.y * up + sqrt(inside) * towards;
      result = vec4(tint * (0.55 + 0.33 * max(dot(m, sunlight), 0.0) * bright + 0.17 * (0.5 + 0.5 * m.z)), 1.0);
    }`];
  const DARK = [`#version 300 es
    precision highp float;` + PLACE + ` void main() { put(); }`, `#version 300 es
    precision mediump float; void main() {}`];

  class Particles extends Scene {
    build() {
      super.build();
      this.programs.ball = program(this.gl, BALL); this.programs.dark = program(this.gl, DARK);
      colorTable(this.gl, this.data.colors);
      if (this.data.flat) this.data.ground = Infinity;  // not seen from the front
      this.load().then(() => this.ask(), (error) => { this.root.classList.add("no-webgl"); console.error(error); });
    }

    home() { super.home(); if (this.data.flat) { this.azimuth = -Math.PI / 2; this.elevation = 0; } }

    async load() {
      const { count } = this.data, [places, values] = await Promise.all(["positions", "values"].map((k) => inflated(this.data[k])));
      this.places = levels(places, 3 * count); this.values = levels(values, count);
      const gl = this.gl;
      this.buffers = [gl.createBuffer(), gl.createBuffer()]; this.array = gl.createVertexArray();
      gl.bindVertexArray(this.array);
      [[0, 3], [8, 1]].forEach(([slot, size], k) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[k]);
        gl.enableVertexAttribArray(slot); gl.vertexAttribPointer(slot, size, gl.UNSIGNED_SHORT, false, 0, 0);
      });
      gl.bindVertexArray(null);
    }

    /** Numbers of the present frame: those of the first if there is one frame only. */
    now(all, width) {
      const k = all.length > width ? this.frame : 0;
      return all.subarray(k * width, (k + 1) * width);
    }

    /** The last frame that is not later than the present time. */
    place() {
      if (!this.array) return;
      const { times, count } = this.data, gl = this.gl, before = this.frame;
      let k = 0;
      while (k + 1 < times.length && times[k + 1] <= this.time + 1e-9) k++;
      this.frame = k;
      if (k === before) return;
      [[this.places, 3 * count], [this.values, count]].forEach(([all, width], b) => {
        if (before !== undefined && all.length === width) return;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[b]); gl.bufferData(gl.ARRAY_BUFFER, this.now(all, width), gl.DYNAMIC_DRAW);
      });
    }

    bodies(kind, view) {
      if (!this.array || (kind === "shadow" && this.data.flat)) return;
      const gl = this.gl, { low, step, radius, least, most, limits, steps, count, cells } = this.data;
      const p = kind === "shadow" ? this.programs.dark : this.programs.ball;
      if (kind === "shadow") gl.useProgram(p.p);
      else {
        this.lit(p);
        const level = (x) => (x - least) / ((most - least) || 1) * steps;
        gl.uniform1i(p.at.colors, 1); gl.uniform2f(p.at.range, level(limits[0]), level(limits[1]));
        gl.uniform1f(p.at.square, cells ? 1 : 0); gl.uniform1f(p.at.radius, radius);
        gl.uniform3fv(p.at.sunlight, this.light.sun);
        const r = Math.hypot(view[0], view[4], view[8]), u = Math.hypot(view[1], view[5], view[9]);
        gl.uniform3f(p.at.right, view[0] / r, view[4] / r, view[8] / r); gl.uniform3f(p.at.up, view[1] / u, view[5] / u, view[9] / u);
      }
      const high = kind === "shadow" ? 2048 : this.canvas.height, rows = Math.hypot(view[1], view[5], view[9]);
      gl.uniformMatrix4fv(p.at.view, false, view); gl.uniform3fv(p.at.low, low); gl.uniform1f(p.at.unit, step);
      gl.uniform1f(p.at.pixels, (cells ? 1.02 : kind === "shadow" ? 0.8 : 1) * radius * high * rows);
      gl.bindVertexArray(this.array); gl.drawArrays(gl.POINTS, 0, count);
    }

    shown() { return this.data.times[this.frame || 0]; }

    position(i) {
      const X = this.now(this.places, 3 * this.data.count), { low, step } = this.data;
      return [0, 1, 2].map((k) => low[k] + step * X[3 * i + k]);
    }

    /** The nearest particle that a ray meets: its number, and where it is. */
    told(ray) {
      if (!this.array || this.frame === undefined) return "";
      const { count, radius, least, most, steps, unit, metre, plain, cells, flat } = this.data;
      let best = Infinity, found = -1;
      for (let i = 0; i < count; i++) {
        const way = sub(this.position(i), this.eye), far = dot(way, ray), off = add(way, ray, -far);
        const near = cells ? Math.max(Math.abs(off[0]), Math.abs(off[1]), Math.abs(off[2])) : Math.hypot(...off);
        if (near <= 1.01 * radius && far > 0 && far < best) { best = far; found = i; }
      }
      if (found < 0) return "";
      const number = least + this.now(this.values, count)[found] / steps * (most - least), p = this.position(found);
      const where = (flat ? [p[0], p[2]] : p).map((v) => Number((v / metre).toPrecision(4))).join(", ");
      return `${cells ? "cell" : "particle"} ${found} at (${where}) m${plain ? "" : `: ${Number(number.toPrecision(4))} ${unit}`}`;
    }
  }

  kinds.particles = Particles;
})();
