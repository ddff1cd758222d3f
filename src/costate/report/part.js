// Parts that grow: elements appear when they are born, with a number at every node as a colour. See costate/report/part.py for the
// layout of the data. Only frames that were computed are shown.
"use strict";
(() => {
  const { Scene, kinds, LIGHT, program, instance, along, inflated, summed, levels, colorTable, add } = costateScene;

  // Light is mild: colours are numbers here. Normals are those of the faces, towards the eye.
  const PART = [`#version 300 es
    in vec3 position; in float value; uniform mat4 view; out vec3 at; out float number;
    void main() { at = position; number = value; gl_Position = view * vec4(position, 1.0); }`, `#version 300 es
    precision highp float; in vec3 at; in float number; uniform vec3 eye; uniform vec2 range; uniform sampler2D colors; out vec4 result;` + LIGHT + `
    void main() {
      vec3 m = normalize(cross(dFdx(at), dFdy(at)));
      if (dot(m, eye - at) < 0.0) m = -m;
      float light = max(dot(m, sun), 0.0) * lit(at + 0.004 * m), sky = 0.5 + 0.5 * m.z;
      float share = clamp((number - range.x) / (range.y - range.x), 0.0, 1.0);
      vec3 c = texture(colors, vec2((0.5 + 255.0 * share) / 256.0, 0.5)).rgb;
      result = vec4(c * (0.70 + 0.20 * light + 0.12 * sky), 1.0);
    }`];
  const EDGES = [`#version 300 es
    in vec3 position; uniform mat4 view; void main() { gl_Position = view * vec4(position, 1.0); }`, `#version 300 es
    precision highp float; uniform vec4 tint; out vec4 result; void main() { result = tint; }`];

  const SIDES = [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [2, 3, 7, 6], [0, 4, 7, 3], [1, 2, 6, 5]];
  const TOWARDS = [1, -1, 1];  // the side of x, y and z that a cut removes: that of the camera

  /** All faces, as four nodes each, with the one or two elements that they belong to (-1: none). */
  function facesOf(elements) {
    const known = new Map(), nodes = [], owners = [];
    for (let e = 0; e < elements.length / 8; e++) for (const side of SIDES) {
      const four = side.map((k) => elements[8 * e + k]), key = [...four].sort((a, b) => a - b).join(" "), face = known.get(key);
      if (face === undefined) { known.set(key, owners.length / 2); nodes.push(...four); owners.push(e, -1); }
      else owners[2 * face + 1] = e;
    }
    return { nodes: Uint32Array.from(nodes), owners: Int32Array.from(owners) };
  }

  class Part extends Scene {
    build() {
      super.build();
      const gl = this.gl;
      this.programs.part = program(gl, PART); this.programs.edges = program(gl, EDGES);
      colorTable(gl, this.data.colors);
      this.cut = { axis: -1, depth: 0.5 }; this.edgesOn = false;
      this.load().then(() => this.ask(), (error) => { this.root.classList.add("no-webgl"); console.error(error); });
    }

    async load() {
      const [nodes, elements, values] = await Promise.all(["nodes", "elements", "values"].map((k) => inflated(this.data[k])));
      this.nodes = new Float32Array(nodes);
      this.elements = summed(new Int32Array(elements), 8);
      this.values = levels(values, this.nodes.length / 3);
      this.faces = facesOf(this.elements);
      this.centres = new Float32Array(3 * this.elements.length / 8);
      this.elements.forEach((n, k) => { for (let i = 0; i < 3; i++) this.centres[3 * (k >> 3) + i] += this.nodes[3 * n + i] / 8; });
      const gl = this.gl, position = gl.createBuffer();
      this.buffers = { value: gl.createBuffer(), faces: gl.createBuffer(), edges: gl.createBuffer() };
      gl.bindBuffer(gl.ARRAY_BUFFER, position); gl.bufferData(gl.ARRAY_BUFFER, this.nodes, gl.STATIC_DRAW);
      this.arrays = ["faces", "edges"].map((kind) => {
        const vao = gl.createVertexArray(); gl.bindVertexArray(vao);
        gl.bindBuffer(gl.ARRAY_BUFFER, position); gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.value); gl.enableVertexAttribArray(8); gl.vertexAttribPointer(8, 1, gl.UNSIGNED_SHORT, false, 0, 0);
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[kind]);
        return vao;
      });
      gl.bindVertexArray(null);
    }

    /** The last frame that is not later than the present time. */
    place() {
      if (!this.arrays) return;
      const { times, spots, on } = this.data, gl = this.gl, n = this.nodes.length / 3;
      let k = 0;
      while (k + 1 < times.length && times[k + 1] <= this.time + 1e-9) k++;
      if (k !== this.frame) {
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.value);
        gl.bufferData(gl.ARRAY_BUFFER, this.values.subarray(k * n, (k + 1) * n), gl.DYNAMIC_DRAW);
      }
      this.frame = k;
      this.uncover();
      const p = spots.slice(3 * k, 3 * k + 3), s = this.size, high = this.data.beam, red = [1, 0.3, 0.18];
      this.put(this.meshes[0], on[k] ? [instance(along(add(p, [0, 0, high]), [0, 0, -1]), [0.025 * s, 0.025 * s, high], [...red, 0.45])] : []);
      this.put(this.meshes[1], on[k] ? [instance(along(p, [0, 0, 1]), [0.008 * s, 0.008 * s, 0.008 * s], [1, 0.95, 0.9, 1])] : []);
    }

    /** Tell which elements a cut leaves. */
    kept() {
      const { axis, depth } = this.cut, { low, high } = this.data, count = this.elements.length / 8, kept = new Uint8Array(count).fill(1);
      if (axis < 0) return kept;
      const sign = TOWARDS[axis], bound = sign > 0 ? high[axis] - depth * (high[axis] - low[axis]) : low[axis] + depth * (high[axis] - low[axis]);
      for (let e = 0; e < count; e++) kept[e] = sign * (this.centres[3 * e + axis] - bound) <= 0;
      return kept;
    }

    /** Find the faces that are seen: those with one element that is there, on one side only. */
    uncover() {
      const alive = this.data.alive[this.frame], state = `${alive} ${this.cut.axis} ${this.cut.depth}`;
      if (state === this.state) return;
      this.state = state;
      const { nodes, owners } = this.faces, kept = this.kept(), seen = [], there = (e) => e >= 0 && e < alive && kept[e] === 1;
      for (let f = 0; f < owners.length / 2; f++) if (there(owners[2 * f]) !== there(owners[2 * f + 1])) seen.push(f);
      this.seenFaces = seen;
      const faces = new Uint32Array(6 * seen.length), edges = new Uint32Array(8 * seen.length);
      seen.forEach((f, k) => {
        const [a, b, c, d] = nodes.subarray(4 * f, 4 * f + 4);
        faces.set([a, b, c, a, c, d], 6 * k); edges.set([a, b, b, c, c, d, d, a], 8 * k);
      });
      const gl = this.gl;
      gl.bindVertexArray(null);
      for (const [kind, list] of [["faces", faces], ["edges", edges]]) {
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[kind]); gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, list, gl.DYNAMIC_DRAW);
      }
      this.triangles = faces;
      this.root.dataset.faces = String(seen.length);
    }

    bodies(kind, view) {
      if (!this.triangles) return;
      const gl = this.gl, p = kind === "shadow" ? this.programs.shadow : this.programs.part;
      gl.bindVertexArray(this.arrays[0]);
      if (kind === "shadow") {
        gl.useProgram(p.p);
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]].forEach((column, k) => gl.vertexAttrib4fv(2 + k, column));
        gl.vertexAttrib3f(6, 1, 1, 1);
      } else {
        this.lit(p);
        const { least, most, limits, steps } = this.data, level = (x) => (x - least) / ((most - least) || 1) * steps;
        gl.uniform1i(p.at.colors, 1); gl.uniform2f(p.at.range, level(limits[0]), level(limits[1]));
      }
      gl.uniformMatrix4fv(p.at.view, false, view);
      gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(1, 1);
      gl.drawElements(gl.TRIANGLES, this.triangles.length, gl.UNSIGNED_INT, 0);
      gl.disable(gl.POLYGON_OFFSET_FILL);
    }

    /** Edges of elements, and the laser. */
    marks(view) {
      if (!this.triangles) return;
      const gl = this.gl, p = this.programs.edges;
      if (this.edgesOn) {
        gl.useProgram(p.p); gl.bindVertexArray(this.arrays[1]);
        gl.uniformMatrix4fv(p.at.view, false, view); gl.uniform4f(p.at.tint, 0, 0, 0, 0.25);
        gl.drawElements(gl.LINES, 8 * this.seenFaces.length, gl.UNSIGNED_INT, 0);
      }
      this.drawMeshes(this.programs.mesh, view, [this.meshes[1]]);
      gl.depthMask(false); this.drawMeshes(this.programs.mesh, view, [this.meshes[0]]); gl.depthMask(true);
    }

    shown() { return this.data.times[this.frame || 0]; }

    controls() {
      super.controls();
      const q = (s) => this.root.querySelector(s);
      q(".axis").onchange = (e) => { this.cut.axis = Number(e.target.value); q(".depth").hidden = this.cut.axis < 0; this.ask(); };
      q(".depth").oninput = (e) => { this.cut.depth = Number(e.target.value); this.ask(); };
      q(".edges").onchange = (e) => { this.edgesOn = e.target.checked; this.ask(); };
    }

    /** The number where a ray meets the part first, and the place. */
    told(ray) {
      if (!this.triangles) return "";
      const X = this.nodes, [px, py, pz] = this.eye, [dx, dy, dz] = ray, t = this.triangles;
      let best = Infinity, found = null;
      for (let k = 0; k < t.length; k += 3) {
        const a = 3 * t[k], b = 3 * t[k + 1], c = 3 * t[k + 2], ax = X[a], ay = X[a + 1], az = X[a + 2];
        const ux = X[b] - ax, uy = X[b + 1] - ay, uz = X[b + 2] - az, vx = X[c] - ax, vy = X[c + 1] - ay, vz = X[c + 2] - az;
        const hx = dy * vz - dz * vy, hy = dz * vx - dx * vz, hz = dx * vy - dy * vx, det = ux * hx + uy * hy + uz * hz;
        if (Math.abs(det) < 1e-14) continue;
        const sx = px - ax, sy = py - ay, sz = pz - az, x = (sx * hx + sy * hy + sz * hz) / det;
        if (x < 0 || x > 1) continue;
        const qx = sy * uz - sz * uy, qy = sz * ux - sx * uz, qz = sx * uy - sy * ux, y = (dx * qx + dy * qy + dz * qz) / det;
        const far = (vx * qx + vy * qy + vz * qz) / det;
        if (y >= 0 && x + y <= 1 && far > 0 && far < best) { best = far; found = [k, x, y]; }
      }
      if (!found) return "";
      const { least, most, steps, unit, metre } = this.data, first = this.frame * this.nodes.length / 3, [k, x, y] = found;
      const [a, b, c] = [0, 1, 2].map((i) => this.values[first + t[k + i]]), level = a + x * (b - a) + y * (c - a);
      const place = add(this.eye, ray, best).map((v) => (1e3 * v / metre).toFixed(1)).join(", ");
      return `${Number((least + level / steps * (most - least)).toPrecision(4))} ${unit} at (${place}) mm`;
    }
  }

  kinds.part = Part;
})();
