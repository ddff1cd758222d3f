// What interactive 3D views have in common: instanced meshes, a sun with a shadow map, a ground with a grid, an orbit camera, and time.
// A kind of view is a class that extends Scene and stands in `kinds`: replay.js, part.js, particles.js. Nothing is fetched.
"use strict";
const costateScene = (() => {
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  // Numbers, from text or as they are.
  const floats = (text) => typeof text === "string" ? new Float32Array(bytes(text).buffer) : text;
  const ints = (text) => typeof text === "string" ? new Uint32Array(bytes(text).buffer) : text;

  // --- numbers, as part.py packs them ----------------------------------------------------------------------------------

  async function inflated(text) {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  /** Numbers that stand as differences from those of the row before. */
  function summed(rows, width) {
    for (let i = width; i < rows.length; i++) rows[i] += rows[i - width];
    return rows;
  }

  function levels(buffer, width) {
    const raw = new Uint8Array(buffer), n = raw.length / 2, found = new Int16Array(n);
    for (let i = 0; i < n; i++) { const z = raw[i] | (raw[n + i] << 8); found[i] = (z >> 1) ^ -(z & 1); }
    return new Uint16Array(summed(found, width).buffer);
  }

  // --- vectors and matrices (column-major, as WebGL takes them) ---------------------------------------------------

  const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

  function multiply(a, b) {
    const c = new Float32Array(16);
    for (let j = 0; j < 4; j++)
      for (let i = 0; i < 4; i++)
        for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    return c;
  }

  function lookAt(eye, target) {
    const f = unit(sub(target, eye));
    const r = unit(cross(f, Math.abs(f[2]) > 0.999 ? [0, 1, 0] : [0, 0, 1]));
    const u = cross(r, f);
    return new Float32Array([r[0], u[0], -f[0], 0, r[1], u[1], -f[1], 0, r[2], u[2], -f[2], 0,
      -dot(r, eye), -dot(u, eye), dot(f, eye), 1]);
  }

  function perspective(fov, aspect, near, far) {
    const s = 1 / Math.tan(fov / 2);
    return new Float32Array([s / aspect, 0, 0, 0, 0, s, 0, 0, 0, 0, (far + near) / (near - far), -1,
      0, 0, 2 * far * near / (near - far), 0]);
  }

  const orthographic = (r, depth) =>
    new Float32Array([1 / r, 0, 0, 0, 0, 1 / r, 0, 0, 0, 0, -1 / depth, 0, 0, 0, 0, 1]);

  // --- shaders ----------------------------------------------------------------------------------------------------

  const LIGHT = `
    uniform highp sampler2DShadow shadow_map; uniform mat4 sun_view; uniform vec3 sun;
    float lit(vec3 p) {
      vec4 h = sun_view * vec4(p, 1.0); vec3 s = h.xyz * 0.5 + 0.5;
      if (any(lessThan(s, vec3(0.0))) || any(greaterThan(s, vec3(1.0)))) return 1.0;
      float sum = 0.0;
      for (int i = -2; i <= 2; i++) for (int j = -2; j <= 2; j++)
        sum += texture(shadow_map, vec3(s.xy + 1.3 * vec2(i, j) / 2048.0, s.z - 0.0015));
      return sum / 25.0;
    }
    vec3 encode(vec3 c) { return pow(clamp(c, 0.0, 1.0), vec3(1.0 / 2.2)); }
    vec3 decode(vec3 c) { return pow(c, vec3(2.2)); }`;

  const SHADERS = {
    mesh: [`#version 300 es
      in vec3 position; in vec3 normal; in mat4 pose; in vec3 scale; in vec4 color;
      uniform mat4 view; out vec3 at; out vec3 n; out vec4 tint;
      void main() {
        vec4 world = pose * vec4(position * scale, 1.0);
        at = world.xyz; n = mat3(pose) * (normal / scale); tint = color; gl_Position = view * world;
      }`, `#version 300 es
      precision highp float; in vec3 at; in vec3 n; in vec4 tint; uniform vec3 eye; out vec4 result;` + LIGHT + `
      void main() {
        vec3 m = normalize(n), v = normalize(eye - at), h = normalize(v + sun);
        float facing = max(dot(m, sun), 0.0), light = facing * lit(at + 0.004 * m), sky = 0.5 + 0.5 * m.z;
        float rim = pow(1.0 - max(dot(m, v), 0.0), 3.0);
        vec3 c = decode(tint.rgb) * (0.78 * light * vec3(1.0, 0.97, 0.92) + (0.16 + 0.28 * sky) * vec3(0.92, 0.97, 1.05));
        c += 0.18 * light * pow(max(dot(m, h), 0.0), 40.0) + 0.06 * rim * sky;
        result = vec4(encode(c) * tint.a, tint.a);
      }`],
    shadow: [`#version 300 es
      in vec3 position; in mat4 pose; in vec3 scale; uniform mat4 view;
      void main() { gl_Position = view * pose * vec4(position * scale, 1.0); }`,
    `#version 300 es
      precision highp float; void main() {}`],
    ground: [`#version 300 es
      in vec2 corner; uniform mat4 view; uniform vec3 middle; uniform float reach; out vec3 at;
      void main() { at = vec3(middle.xy + corner * reach, middle.z); gl_Position = view * vec4(at, 1.0); }`,
    `#version 300 es
      precision highp float; in vec3 at; uniform vec3 middle; uniform float far; uniform vec3 tint; uniform vec3 line_tint;
      uniform float dark; out vec4 result;` + LIGHT + `
      float lines(vec2 p, float step, float width) {
        vec2 q = p / step, w = max(vec2(width / step), fwidth(q) * 0.7);
        vec2 d = abs(fract(q + 0.5) - 0.5) / w, faint = min(vec2(1.0), 2.0 * width / step / w);
        vec2 on = clamp(1.2 - d, 0.0, 1.0) * faint * clamp(1.5 - 4.0 * w, 0.0, 1.0);
        return max(on.x, on.y);
      }
      void main() {
        float step = pow(10.0, floor(log(far * 0.6) / log(10.0)));
        float on = max(0.9 * lines(at.xy, step, 0.0009 * far), 0.3 * lines(at.xy, step / 5.0, 0.0009 * far));
        vec3 c = mix(tint, line_tint, on) * mix(dark, 1.0, lit(at));
        float fog = exp(-pow(length(at.xy - middle.xy) / (2.2 * far), 2.0));
        result = vec4(c * fog, fog);
      }`],
  };
  function program(gl, [vertex, fragment]) {
    const p = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const s = gl.createShader(kind);
      gl.shaderSource(s, text); gl.compileShader(s);
      if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s));
      gl.attachShader(p, s);
    }
    ["position", "normal", "pose"].forEach((name, k) => gl.bindAttribLocation(p, k, name));
    gl.bindAttribLocation(p, 6, "scale"); gl.bindAttribLocation(p, 7, "color"); gl.bindAttribLocation(p, 8, "value");
    gl.linkProgram(p);
    const at = {};
    for (let i = 0; i < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(p, i).name;
      at[name] = gl.getUniformLocation(p, name);
    }
    return { p, at };
  }

  // --- the view ---------------------------------------------------------------------------------------------------

  const FOV = 35 * Math.PI / 180;
  const INSTANCE = 23;  // floats per instance: pose 16, scale 3, colour 4
  const SHADOW = 2048;

  class Scene {
    constructor(root, data) {
      this.root = root; this.data = data;
      this.canvas = root.querySelector("canvas.scene");
      this.gl = this.canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true });
      if (!this.gl) { root.classList.add("no-webgl"); return; }
      this.begin = data.times[0]; this.end = data.times[data.times.length - 1];
      this.time = this.begin; this.playing = Boolean(data.play) && !window.matchMedia("(prefers-reduced-motion: reduce)").matches; this.speed = data.speed || 1;
      this.build(); this.home(); this.controls(); this.recolor();
      new ResizeObserver(() => this.ask()).observe(this.canvas);
      this.ask();
    }

    // What a kind of view defines: where instances are (place), what is drawn in the light of the sun (bodies) and over it (marks),
    // and what is said of what a ray from the eye meets ("": nothing).
    place() {}
    bodies(kind, view) { this.drawMeshes(this.programs[kind], view, this.meshes); }
    marks(view) {}
    told(ray) { return ""; }

    /** The time of what is shown. */
    shown() { return this.time; }

    build() {
      const gl = this.gl;
      this.programs = Object.fromEntries(Object.entries(SHADERS).map(([k, s]) => [k, program(gl, s)]));
      this.meshes = this.data.meshes.map((m) => this.upload(m));
      this.quad = gl.createVertexArray(); gl.bindVertexArray(this.quad);
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
      const corner = gl.getAttribLocation(this.programs.ground.p, "corner");
      gl.enableVertexAttribArray(corner); gl.vertexAttribPointer(corner, 2, gl.FLOAT, false, 0, 0);
      this.shadowMap = gl.createTexture(); gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.DEPTH_COMPONENT24, SHADOW, SHADOW, 0, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, null);
      for (const [k, v] of [["TEXTURE_MIN_FILTER", "LINEAR"], ["TEXTURE_MAG_FILTER", "LINEAR"],
        ["TEXTURE_WRAP_S", "CLAMP_TO_EDGE"], ["TEXTURE_WRAP_T", "CLAMP_TO_EDGE"],
        ["TEXTURE_COMPARE_MODE", "COMPARE_REF_TO_TEXTURE"], ["TEXTURE_COMPARE_FUNC", "LEQUAL"]])
        gl.texParameteri(gl.TEXTURE_2D, gl[k], gl[v]);
      this.shadowBuffer = gl.createFramebuffer(); gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowMap, 0);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }

    upload(mesh) {
      const gl = this.gl, vao = gl.createVertexArray();
      gl.bindVertexArray(vao);
      const corners = [gl.createBuffer(), gl.createBuffer()];
      [mesh.vertices, mesh.normals].forEach((text, k) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, corners[k]);
        gl.bufferData(gl.ARRAY_BUFFER, floats(text), gl.STATIC_DRAW);
        gl.enableVertexAttribArray(k); gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0);
      });
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      const faces = ints(mesh.faces);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      const slots = [[2, 4, 0], [3, 4, 4], [4, 4, 8], [5, 4, 12], [6, 3, 16], [7, 4, 19]];
      for (const [slot, size, at] of slots) {
        gl.enableVertexAttribArray(slot);
        gl.vertexAttribPointer(slot, size, gl.FLOAT, false, 4 * INSTANCE, 4 * at); gl.vertexAttribDivisor(slot, 1);
      }
      const v = floats(mesh.vertices), reach = [0, 0, 0];
      v.forEach((x, i) => { reach[i % 3] = Math.max(reach[i % 3], Math.abs(x)); });
      return { name: mesh.name, vao, buffer, count: faces.length, instances: 0, reach, vertices: v, faces, corners };
    }

    home() {
      const { box, outline } = this.data;
      this.seen = box ? [0, 1, 2, 3, 4, 5, 6, 7].map((k) => [0, 1, 2].map((i) => box[(k >> i) & 1][i]))
        : Array.from({ length: outline.length / 3 }, (_, k) => outline.slice(3 * k, 3 * k + 3));
      this.size = Math.hypot(...sub(this.data.high, this.data.low)) || 1;
      this.near = box ? Math.hypot(...sub(box[1], box[0])) : this.size;
      this.azimuth = -55 * Math.PI / 180; this.elevation = 0.35; this.distance = 0;  // 0: fitted when drawn
    }

    /** Go as near as all points are still seen, and look at the middle of them: see framing_points in camera.py. */
    fit(aspect) {
      const e = this.direction(), f = e.map((x) => -x), r = unit(cross(f, [0, 0, 1])), u = cross(r, f);
      const slope = Math.tan(FOV / 2) / 1.1, depths = this.seen.map((p) => dot(p, f));
      const middle = (Math.min(...depths) + Math.max(...depths)) / 2;
      let nearest = middle - 0.1;
      const [x, y] = [[r, slope * aspect], [u, slope]].map(([axis, s]) => {
        const first = Math.max(...this.seen.map((p, k) => dot(p, axis) - s * depths[k]));
        const last = Math.min(...this.seen.map((p, k) => dot(p, axis) + s * depths[k]));
        nearest = Math.min(nearest, (last - first) / (2 * s));
        return (first + last) / 2;
      });
      this.target = add(add(add([0, 0, 0], r, x), u, y), f, middle);
      return middle - nearest;
    }

    direction() {
      const c = Math.cos(this.elevation);
      return [c * Math.cos(this.azimuth), c * Math.sin(this.azimuth), Math.sin(this.elevation)];
    }

    /** Put instances of a mesh, rows as `instance` returns them. */
    put(mesh, rows) {
      const gl = this.gl, all = new Float32Array(rows.length * INSTANCE);
      rows.forEach((row, i) => all.set(row, i * INSTANCE));
      mesh.instances = rows.length;
      gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer); gl.bufferData(gl.ARRAY_BUFFER, all, gl.DYNAMIC_DRAW);
    }

    draw() {
      const gl = this.gl, scale = Math.min(window.devicePixelRatio || 1, 2);
      const w = Math.max(1, Math.round(this.canvas.clientWidth * scale)), h = Math.max(1, Math.round(this.canvas.clientHeight * scale));
      if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
      if (!this.distance) this.distance = this.fit(w / h);
      this.place();
      const sun = unit([0.35, -0.45, 0.82]), r = 0.62 * this.size;
      const sunView = multiply(orthographic(r, 3 * r), lookAt(add(this.home0(), sun, r), this.home0()));
      this.light = { sun, sunView };
      gl.enable(gl.DEPTH_TEST); gl.depthMask(true);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer); gl.viewport(0, 0, SHADOW, SHADOW); gl.clear(gl.DEPTH_BUFFER_BIT);
      this.bodies("shadow", sunView);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null); gl.viewport(0, 0, w, h);
      gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      const target = add(this.target, this.moved()), eye = this.eye = add(target, this.direction(), this.distance);
      const view = this.view = multiply(perspective(FOV, w / h, 0.01 * this.distance, 40 * this.distance), lookAt(eye, target));
      gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      const g = this.programs.ground; this.lit(g);
      gl.uniformMatrix4fv(g.at.view, false, view); gl.uniform3f(g.at.middle, this.home0()[0], this.home0()[1], this.data.ground);
      gl.uniform1f(g.at.reach, 12 * this.size); gl.uniform1f(g.at.far, 1.6 * this.size);
      gl.uniform3fv(g.at.tint, this.colors.ground); gl.uniform3fv(g.at.line_tint, this.colors.line); gl.uniform1f(g.at.dark, this.colors.dark);
      gl.bindVertexArray(this.quad); gl.depthMask(false);
      if (eye[2] > this.data.ground) gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
      gl.depthMask(true);
      this.lit(this.programs.mesh);
      this.bodies("mesh", view); this.marks(view);
    }

    /** Use a program in the light of the sun. */
    lit(p) {
      const gl = this.gl, { sun, sunView } = this.light;
      gl.useProgram(p.p); gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
      gl.uniform1i(p.at.shadow_map, 0); gl.uniformMatrix4fv(p.at.sun_view, false, sunView);
      if (p.at.sun) gl.uniform3fv(p.at.sun, sun);
      if (p.at.eye) gl.uniform3fv(p.at.eye, this.eye);
    }

    home0() { return add(add(this.data.low, this.data.high).map((x) => x / 2), this.moved()); }

    /** How far what the camera follows has gone. */
    moved() { return [0, 0, 0]; }

    drawMeshes(p, view, meshes) {
      const gl = this.gl;
      gl.useProgram(p.p); gl.uniformMatrix4fv(p.at.view, false, view);
      for (const mesh of meshes) if (mesh.instances) {
        gl.bindVertexArray(mesh.vao);
        gl.drawElementsInstanced(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0, mesh.instances);
      }
    }

    // --- time and input ---

    ask() { if (!this.asked) { this.asked = true; requestAnimationFrame((now) => this.tick(now)); } }

    tick(now) {
      this.asked = false;
      if (this.playing) {
        const span = this.end - this.begin;
        this.time += this.speed * Math.min(0.1, (now - (this.last || now)) / 1000);
        if (this.time > this.end) this.time = this.begin + (span > 0 ? (this.time - this.begin) % span : 0);
        this.last = now; this.ask();
      } else this.last = null;
      this.draw(); this.show();
    }

    show() {
      const q = (s) => this.root.querySelector(s), { begin, end } = this;
      q(".scrub").value = String(this.time);
      q(".clock").textContent = `${this.shown().toFixed(2)} / ${end.toFixed(2)} s`;
      q(".play").textContent = this.playing ? "\u275A\u275A" : "\u25B6";
      this.root.dataset.time = String(this.time); this.root.dataset.frame = String(this.frame);
      this.root.querySelectorAll(".strip .now").forEach((e) => { e.style.left = `${end > begin ? 100 * (this.time - begin) / (end - begin) : 0}%`; });
      document.dispatchEvent(new CustomEvent("costate-time", { detail: { replay: this.root.id, time: this.shown() } }));
    }

    seek(time) { this.time = time; this.ask(); }
    toggle() { this.playing = !this.playing; this.last = null; this.ask(); }

    controls() {
      const q = (s) => this.root.querySelector(s), c = this.canvas;
      q(".play").onclick = () => this.toggle();
      q(".scrub").oninput = (e) => { this.playing = false; this.seek(Number(e.target.value)); };
      q(".speed").onchange = (e) => { this.speed = Number(e.target.value); };
      this.root.querySelectorAll(".strip").forEach((s) => {
        s.onclick = (e) => this.seek(this.begin + (e.offsetX / s.clientWidth) * (this.end - this.begin));
      });
      c.onkeydown = (e) => { if (e.key === " ") { e.preventDefault(); this.toggle(); } };
      let grab = null, button = 0;
      c.onpointerdown = (e) => { grab = e; button = e.button; c.setPointerCapture(e.pointerId); };
      c.onpointerup = () => { grab = null; };
      c.onpointermove = (e) => {
        if (!grab) { this.hover(e); return; }
        const dx = e.clientX - grab.clientX, dy = e.clientY - grab.clientY, pan = button === 2 || e.shiftKey;
        grab = e;
        if (pan) this.pan(dx, dy);
        else { this.azimuth -= dx * 0.008; this.elevation = Math.max(-1.5, Math.min(1.5, this.elevation + dy * 0.008)); }
        this.ask();
      };
      c.onwheel = (e) => { e.preventDefault(); this.distance *= Math.exp(e.deltaY * 0.001); this.ask(); };
      c.ondblclick = () => { this.home(); this.ask(); };
      c.oncontextmenu = (e) => e.preventDefault();
    }

    pan(dx, dy) {
      const f = this.direction().map((x) => -x), r = unit(cross(f, [0, 0, 1])), u = cross(r, f);
      const k = 2 * Math.tan(FOV / 2) * this.distance / this.canvas.clientHeight;
      this.target = add(add(this.target, r, -k * dx), u, k * dy);
    }


    /** Say what is under the pointer. */
    hover(e) {
      const box = this.canvas.getBoundingClientRect(), tip = this.root.querySelector(".name");
      const t = Math.tan(FOV / 2), f = this.direction().map((x) => -x), r = unit(cross(f, [0, 0, 1])), u = cross(r, f);
      const x = (2 * (e.clientX - box.left) / box.width - 1) * t * box.width / box.height, y = (1 - 2 * (e.clientY - box.top) / box.height) * t;
      tip.textContent = this.told(unit(add(add(f, r, x), u, y)));
      tip.style.left = `${e.clientX - box.left + 12}px`; tip.style.top = `${e.clientY - box.top + 12}px`;
      tip.hidden = !tip.textContent;
    }

    recolor() {
      const style = getComputedStyle(this.root), color = (name) => {
        const hex = style.getPropertyValue(name).trim().replace("#", "");
        return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
      };
      this.colors = { ground: color("--ground"), line: color("--grid-line"), dark: 0.62 };
      this.ask();
    }
  }

  function instance(M, scale, color) {
    return [M[0], M[4], M[8], 0, M[1], M[5], M[9], 0, M[2], M[6], M[10], 0, M[3], M[7], M[11], 1, ...scale, ...color];
  }

  /** [R | p] with z along a direction. */
  function along(p, direction) {
    const z = unit(direction), x = unit(cross(Math.abs(z[2]) > 0.9 ? [1, 0, 0] : [0, 0, 1], z)), y = cross(z, x);
    return [x[0], y[0], z[0], p[0], x[1], y[1], z[1], p[1], x[2], y[2], z[2], p[2]];
  }


  /** The scale of colours, as a texture of unit 1. */
  function colorTable(gl, text) {
    gl.activeTexture(gl.TEXTURE1); gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB8, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, bytes(text));
    for (const [k, v] of [["MIN_FILTER", "LINEAR"], ["MAG_FILTER", "LINEAR"], ["WRAP_S", "CLAMP_TO_EDGE"], ["WRAP_T", "CLAMP_TO_EDGE"]])
      gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${k}`], gl[v]);
  }

  const kinds = {};
  document.addEventListener("DOMContentLoaded", () => {
    window.costateReplays = [...document.querySelectorAll(".replay")].map((root) => {
      try { return new kinds[root.dataset.kind](root, JSON.parse(root.querySelector("script").textContent)); }
      catch (error) { root.classList.add("no-webgl"); console.error(error); return null; }
    });
  });
  document.addEventListener("costate-theme", () => (window.costateReplays || []).forEach((r) => r && r.gl && r.recolor()));
  return { Scene, kinds, LIGHT, program, instance, along, inflated, summed, levels, colorTable, bytes, floats, ints, sub, add, dot, cross, unit };
})();
