// What has to happen in the browser: clicks apart from drags, sizes, turning by keys, files in and pictures out.
"use strict";
window.studio = (() => {
  const view = () => window.trame.refs.view;
  const canvas = () => document.getElementById("canvas");
  const say = (...words) => window.trame.trigger(...words);
  const times = [];
  let pressed = null;

  function press(event) {
    pressed = [event.clientX, event.clientY];
  }

  function click(event) {
    if (!pressed || Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4) return;
    const box = canvas().getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    const up = (box.bottom - event.clientY) / box.height;
    say("clicked", [across, up, view().getCamera()]);
  }

  // Until there is a scene, vtk.js has nothing to turn and complains about a mouse that moves.
  function drawn() {
    if (window.trame.state.get("bars").length) canvas().style.pointerEvents = "auto";
    times.push(performance.now());
  }

  function watch() {
    const tell = () => {
      const box = canvas().getBoundingClientRect();
      if (box.width > 10 && box.height > 10) say("sized", [box.width, box.height]);
    };
    new ResizeObserver(tell).observe(canvas());
  }

  const minus = (a, b) => a.map((v, i) => v - b[i]);
  const plus = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const length = (a) => Math.hypot(...a);
  const unit = (a) => a.map((v) => v / length(a));

  function zoom(factor) {
    const camera = view().getCamera();
    const away = minus(camera.position, camera.focalPoint);
    camera.parallelScale /= factor;
    if (!camera.parallelProjection) camera.position = plus(camera.focalPoint, away, 1 / factor);
    view().setCamera(camera);
  }

  function turn(right, up) {
    const camera = view().getCamera();
    const away = minus(camera.position, camera.focalPoint);
    const side = unit(cross(camera.viewUp, away));
    const above = unit(cross(away, side));
    const moved = plus(plus(away, side, right * length(away)), above, up * length(away));
    const kept = unit(moved).map((v) => v * length(away));
    camera.position = plus(camera.focalPoint, kept);
    camera.viewUp = unit(cross(kept, cross(above, kept)));
    view().setCamera(camera);
  }

  async function upload(files) {
    if (!files || !files.length) return;
    const name = encodeURIComponent(files[0].name);
    await fetch(`upload?name=${name}`, { method: "POST", body: files[0] });
  }

  function save(url, name) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  }

  async function png(bars, rows) {
    const image = await createImageBitmap(await view().captureImage());
    const scale = window.devicePixelRatio || 1;
    const page = document.createElement("canvas");
    page.width = image.width;
    page.height = image.height;
    const pen = page.getContext("2d");
    pen.drawImage(image, 0, 0);
    bars.forEach((bar, i) => {
      const width = page.width / (rows ? 1 : bars.length);
      const height = page.height / (rows ? bars.length : 1);
      const left = rows ? 0 : i * width;
      const top = rows ? i * height : 0;
      pen.font = `${13 * scale}px sans-serif`;
      pen.fillStyle = "#1c2530";
      pen.fillText(bar.title, left + 12 * scale, top + 20 * scale);
      const [from, to, low] = [left + 0.15 * width, left + 0.85 * width, top + height - 14 * scale];
      const colours = pen.createLinearGradient(from, 0, to, 0);
      const stops = bar.stops.split(", ");
      stops.forEach((stop, k) => colours.addColorStop(k / (stops.length - 1), stop));
      pen.fillStyle = colours;
      pen.fillRect(from, low - 8 * scale, to - from, 8 * scale);
      pen.fillStyle = "#1c2530";
      pen.fillText(bar.low, from, low - 12 * scale);
      pen.textAlign = "right";
      pen.fillText(bar.high, to, low - 12 * scale);
      pen.textAlign = "left";
    });
    page.toBlob((blob) => {
      const url = URL.createObjectURL(blob);
      save(url, "prediction.png");
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });
  }

  return { press, click, watch, zoom, turn, upload, png, drawn, times };
})();
