// Replays of robots: links that move, surfaces that change their shape (cloth), trails and arrows. See costate/report/replay.py for the layout of the data.
"use strict";
(() => {
  const { Scene, kinds, instance, along, floats, ints, sub, add, dot, cross, unit } = costateScene;

  /** [R | p], row by row, of a pose (x y z, qx qy qz qw). */
  function matrixOf(p) {
    const [x, y, z, a, b, c, w] = p;
    return [1 - 2 * (b * b + c * c), 2 * (a * b - c * w), 2 * (a * c + b * w), x,
      2 * (a * b + c * w), 1 - 2 * (a * a + c * c), 2 * (b * c - a * w), y,
      2 * (a * c - b * w), 2 * (b * c + a * w), 1 - 2 * (a * a + b * b), z];
  }

  class Replay extends Scene {
    build() {
      super.build();
      this.poses = floats(this.data.poses);
      this.arrows = floats(this.data.arrows.values); this.arrowStart = this.data.arrows.start;
      this.trailsOn = true; this.arrowsOn = true;
      this.groups = this.meshes.map(() => []);
      this.data.instances.forEach((i) => this.groups[i.mesh].push(i));
      this.above = this.meshes.filter((m) => m.name === "mark cylinder" || m.name === "mark cone");
      this.surfaces = (this.data.surfaces || []).map((s) => ({ ...s, points: floats(s.points), mesh: this.sheet(s) }));
      this.solid = [...this.meshes.filter((m) => !this.above.includes(m)), ...this.surfaces.map((s) => s.mesh)];
    }

    /** A mesh for both sides of a surface: its points twice, those of the other side last. */
    sheet({ name, faces, points }) {
      const f = ints(faces), n = floats(points).length / 3 / this.data.times.length, both = new Uint32Array(2 * f.length);
      for (let k = 0; k < f.length; k += 3) {
        both.set(f.subarray(k, k + 3), k);
        both.set([f[k] + n, f[k + 2] + n, f[k + 1] + n], f.length + k);
      }
      const none = new Float32Array(6 * n);
      return { ...this.upload({ name, vertices: none, normals: none, faces: both }), half: f, n };
    }

    /** Put a surface where it is at the present time: between two frames, each side a little out of the middle. */
    unfold({ name, points, color, mesh }) {
      const { n, half } = mesh, [k, u] = this.between, i = 3 * n * k, j = u ? i + 3 * n : i, thick = 4e-4 * this.size;
      const p = new Float32Array(6 * n), normals = new Float32Array(6 * n);
      for (let m = 0; m < 3 * n; m++) p[m] = (1 - u) * points[i + m] + u * points[j + m];
      const at = (v) => [p[3 * v], p[3 * v + 1], p[3 * v + 2]];
      for (let f = 0; f < half.length; f += 3) {
        const a = at(half[f]), c = cross(sub(at(half[f + 1]), a), sub(at(half[f + 2]), a));
        for (let e = 0; e < 3; e++) for (let m = 0; m < 3; m++) normals[3 * half[f + e] + m] += c[m];
      }
      mesh.reach = [0, 0, 0];
      for (let v = 0; v < n; v++) {
        const e = unit([normals[3 * v], normals[3 * v + 1], normals[3 * v + 2]]), q = at(v);
        for (let m = 0; m < 3; m++) {
          const a = 3 * v + m, b = a + 3 * n;
          normals[a] = e[m]; normals[b] = -e[m]; p[a] = q[m] + thick * e[m]; p[b] = q[m] - thick * e[m];
          mesh.reach[m] = Math.max(mesh.reach[m], Math.abs(q[m]));
        }
      }
      const gl = this.gl;
      [p, normals].forEach((values, s) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.corners[s]); gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      });
      const M = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0], scale = [1, 1, 1];
      mesh.vertices = p;
      this.put(mesh, [instance(M, scale, color)]);
      this.placed.push({ M, mesh, scale, name, sample: 0 });
    }

    /** Poses of all links at the present time, between two frames: [sample][link] -> [R | p]. */
    linkMatrices() {
      const { times, samples, links } = this.data, T = times.length;
      let k = 0;
      while (k + 2 < T && times[k + 1] <= this.time) k++;
      const span = T > 1 ? times[k + 1] - times[k] : 1, u = T > 1 ? Math.min(1, Math.max(0, (this.time - times[k]) / span)) : 0;
      this.frame = T > 1 && u >= 0.999 ? k + 1 : k; this.between = [k, u];
      const n = links.length, stride = 7 * n * samples, found = [];
      for (let s = 0; s < samples; s++) for (let l = 0; l < n; l++) {
        const i = k * stride + 7 * (s * n + l), j = T > 1 ? i + stride : i, p = [];
        let sign = 0;
        for (let m = 3; m < 7; m++) sign += this.poses[i + m] * this.poses[j + m];
        sign = sign < 0 ? -1 : 1;
        for (let m = 0; m < 7; m++) p.push((1 - u) * this.poses[i + m] + u * (m > 2 ? sign : 1) * this.poses[j + m]);
        const norm = Math.hypot(p[3], p[4], p[5], p[6]) || 1;
        for (let m = 3; m < 7; m++) p[m] /= norm;
        found.push(matrixOf(p));
      }
      return found;
    }

    place() {
      const links = this.linkMatrices(), n = this.data.links.length;
      this.placed = [];
      const k = this.data.follow, p = this.poses;
      if (k !== undefined) this.gone = [links[k][3] - p[7 * k], links[k][7] - p[7 * k + 1], 0];
      this.meshes.forEach((mesh, g) => {
        const rows = [];
        for (let s = 0; s < this.data.samples; s++) for (const part of this.groups[g]) {
          const A = links[s * n + part.link], B = part.pose, M = [];
          for (let r = 0; r < 3; r++) for (let c = 0; c < 4; c++)
            M.push(A[4 * r] * B[c] + A[4 * r + 1] * B[4 + c] + A[4 * r + 2] * B[8 + c] + (c === 3 ? A[4 * r + 3] : 0));
          rows.push(instance(M, part.scale, part.color));
          this.placed.push({ M, mesh, scale: part.scale, name: this.data.links[part.link], sample: s });
        }
        for (const m of this.marksOf(g)) rows.push(m);
        this.put(mesh, rows);
      });
      this.surfaces.forEach((s) => this.unfold(s));
    }

    /** Instances of trails and arrows that use a mesh. */
    marksOf(g) {
      const kind = this.data.meshes[g].name, found = [], { trails, links, samples } = this.data;
      const thin = 0.0025 * this.size, n = links.length;
      if (this.trailsOn && kind === "mark tube") for (const t of trails) for (let s = 0; s < samples; s++) {
        const every = Math.max(1, Math.floor(this.frame / 150));
        for (let k = 0; k + every <= this.frame; k += every) {
          const at = (f) => { const i = 7 * ((f * samples + s) * n + t.link); return [0, 1, 2].map((m) => this.poses[i + m]); };
          const a = at(k), b = at(k + every), d = sub(b, a), length = Math.hypot(...d);
          if (length > 1e-6) found.push(instance(along(add(a, d, 0.5), d), [thin, thin, length], t.color));
        }
      }
      if (this.arrowsOn && (kind === "mark cylinder" || kind === "mark cone"))
        for (let k = this.arrowStart[this.frame] || 0; k < (this.arrowStart[this.frame + 1] || 0); k++) {
          const v = this.arrows.subarray(9 * k, 9 * k + 9), p = [v[0], v[1], v[2]], d = [v[3], v[4], v[5]];
          const length = Math.hypot(...d), r = 0.005 * this.near, head = Math.min(6 * r, 0.6 * length), e = unit(d);
          const color = [v[6], v[7], v[8], 1], shaft = length - head;
          if (length < r) continue;
          found.push(kind === "mark cone" ? instance(along(add(p, e, shaft), d), [2.4 * r, 2.4 * r, head], color)
            : instance(along(add(p, e, shaft / 2), d), [r, r, shaft], color));
        }
      return found;
    }

    moved() { return this.gone || [0, 0, 0]; }

    bodies(kind, view) { this.drawMeshes(this.programs[kind], view, this.solid); }

    /** Arrows start inside of links, and are drawn over them. */
    marks(view) {
      this.gl.clear(this.gl.DEPTH_BUFFER_BIT);
      this.drawMeshes(this.programs.mesh, view, this.above);
    }

    controls() {
      super.controls();
      const q = (s) => this.root.querySelector(s);
      q(".trails").onchange = (e) => { this.trailsOn = e.target.checked; this.ask(); };
      q(".arrows").onchange = (e) => { this.arrowsOn = e.target.checked; this.ask(); };
    }

    /** Name of the link that a ray meets first. */
    told(ray) {
      let best = Infinity, found = null;
      for (const part of this.placed || []) {
        const d = meets(part, this.eye, ray);
        if (d < best) { best = d; found = part; }
      }
      return found ? found.name + (this.data.samples > 1 ? ` (sample ${found.sample})` : "") : "";
    }
  }

  /** Distance along a ray to an instance, Infinity if it misses: its box first, then its triangles. */
  function meets({ M, mesh, scale }, eye, ray) {
    const p = [], d = [];
    let near = -Infinity, far = Infinity;
    for (let i = 0; i < 3; i++) {
      const axis = [M[i], M[4 + i], M[8 + i]];
      p.push(dot(sub(eye, [M[3], M[7], M[11]]), axis) / scale[i]); d.push(dot(ray, axis) / scale[i]);
      const a = (-mesh.reach[i] - p[i]) / d[i], b = (mesh.reach[i] - p[i]) / d[i];
      near = Math.max(near, Math.min(a, b)); far = Math.min(far, Math.max(a, b));
    }
    if (near > far || far <= 0) return Infinity;
    const corner = (k) => [0, 1, 2].map((i) => mesh.vertices[3 * mesh.faces[k] + i]);
    let best = Infinity;
    for (let k = 0; k < mesh.faces.length; k += 3) {
      const a = corner(k), u = sub(corner(k + 1), a), v = sub(corner(k + 2), a), h = cross(d, v), det = dot(u, h);
      if (Math.abs(det) < 1e-12) continue;
      const s = sub(p, a), x = dot(s, h) / det, q = cross(s, u), y = dot(d, q) / det, t = dot(v, q) / det;
      if (x >= 0 && y >= 0 && x + y <= 1 && t > 0 && t < best) best = t;
    }
    return best;
  }

  kinds.recording = Replay;
})();
