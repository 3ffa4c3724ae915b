// The page of `holdfast trace report`: everything before and behind its data. It needs no network.
#include "tools/holdfast/trace_command.h"

namespace holdfast::tool {

// clang-format off
const char* const report_page_head =
R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Holdfast capture</title>
<style>
:root { color-scheme: light; --back: #fbfbf9; --panel: #fff; --text: #1d2126; --soft: #667; --line: #dcdcd6; --accent: #1f6f8b; --hit: #f4b942; --bad: #b3261e; }
:root[data-theme=dark] { color-scheme: dark; --back: #14171a; --panel: #1c2024; --text: #e6e8ea; --soft: #98a2ab; --line: #31373d; --accent: #67b7d1; --hit: #b98318; --bad: #ff8a80; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
header { display: flex; gap: 1.2em; align-items: baseline; padding: .8em 1.2em; border-bottom: 1px solid var(--line); flex-wrap: wrap; }
h1 { font-size: 1.1em; margin: 0; } h2 { font-size: .95em; margin: 0 0 .5em; }
header .facts { color: var(--soft); flex: 1; }
main { display: grid; grid-template-columns: minmax(0, 1fr) 24em; gap: 1em; padding: 1em 1.2em; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8em; margin-bottom: 1em; }
aside section { position: sticky; top: 1em; max-height: calc(100vh - 2em); overflow: auto; margin: 0; }
canvas { width: 100%; display: block; cursor: crosshair; }
input, button, select { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .25em .6em; }
.bar { display: flex; gap: .6em; align-items: center; margin-bottom: .5em; } .bar input { flex: 1; }
.soft { color: var(--soft); } .bad { color: var(--bad); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; cursor: pointer; border-bottom: 1px solid var(--line); padding: .2em .5em; white-space: nowrap; user-select: none; }
td { padding: 0 .5em; height: 24px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 22em; }
td.number, th.number { text-align: right; }
#head { table-layout: fixed; } #rows { height: 480px; overflow-y: auto; position: relative; border-bottom: 1px solid var(--line); }
#rows table { position: absolute; top: 0; left: 0; table-layout: fixed; } #rows thead { visibility: hidden; }
tr.chosen td { background: color-mix(in srgb, var(--hit) 45%, transparent); }
#rows tbody tr:hover td, .owners tr:hover td { background: color-mix(in srgb, var(--accent) 14%, transparent); cursor: pointer; }
.tip { position: fixed; pointer-events: none; background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .3em .6em; box-shadow: 0 2px 8px #0004; display: none; z-index: 9; max-width: 30em; }
pre { background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .6em; overflow: auto; max-height: 24em; font-size: 12px; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .1em .8em; margin: 0 0 .6em; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
a { color: var(--accent); cursor: pointer; text-decoration: none; } a:hover { text-decoration: underline; }
.flow { display: grid; grid-template-columns: 1fr 1fr; gap: .6em; margin-bottom: .6em; } .flow div { border-left: 3px solid var(--accent); padding-left: .5em; overflow: hidden; }
@media (max-width: 900px) { main { grid-template-columns: 1fr; } aside section { position: static; max-height: none; } }
</style>
</head>
<body>
<header><h1 id="title"></h1><span class="facts" id="facts"></span><button id="theme">dark</button></header>
<main>
<div>
<section><div class="bar"><h2>Timeline</h2><span class="soft">wheel: zoom, drag: move, click: choose</span><span style="flex:1"></span><select id="lanes"><option value="stream">by queue</option><option value="thread">by worker</option></select><button id="all">everything</button></div><canvas id="timeline"></canvas></section>
<section><div class="bar"><h2>Memory</h2><span class="soft" id="memoryFacts"></span><span style="flex:1"></span><button id="peak">at the peak</button></div><canvas id="memory"></canvas><div id="owners"></div></section>
<section><div class="bar"><h2>Commands</h2><input id="search" placeholder="search: op, kernel, label" aria-label="search"><select id="group"><option value="">each</option><option value="title">by name</option><option value="label">by label</option></select><span class="soft" id="count"></span></div>
<table id="head"></table><div id="rows"><div id="space"></div><table id="body"></table></div></section>
</div>
<aside><section id="details"><h2>Nothing chosen</h2><p class="soft">Choose a command in the timeline or in the table: what it reads and writes, what it waits for, its source.</p></section></aside>
</main>
<div class="tip" id="tip"></div>
<script>
"use strict";
const DATA = )page";

const char* const report_page_tail =
R"page(;
const $ = (id) => document.getElementById(id);
const N = DATA.names, KINDS = ["native", "copy", "fill", "dispatch"];
const commands = DATA.commands.map((c, i) => ({ number: i, title: N[c[0]], op: N[c[1]], label: N[c[2]], kind: KINDS[c[3]], stream: c[4],
  list: c[5], thread: c[6], start: c[7], time: c[8], bytes: c[9], failed: c[10], pipeline: c[11], grid: N[c[12]], edges: c[13], bindings: c[14] }));
const buffers = new Map(DATA.buffers.map((b) => [b[0], { id: b[0], size: b[1], op: N[b[2]], label: N[b[3]], stream: b[4], created: Math.max(b[5], 0), retired: b[6] }]));
const total = commands.reduce((sum, c) => sum + c.time, 0) || 1;
const end = Math.max(1, ...[commands.reduce((m, c) => Math.max(m, c.start + c.time), 0)]);
const escape = (t) => String(t).replace(/[&<>"]/g, (x) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[x]);
const us = (ns) => ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toFixed(1) + " µs" : ns < 1e9 ? (ns / 1e6).toFixed(2) + " ms" : (ns / 1e9).toFixed(3) + " s";
const size = (b) => b < 10240 ? b + " B" : b < 10485760 ? (b / 1024).toFixed(1) + " KiB" : (b / 1048576).toFixed(1) + " MiB";
const rate = (c) => c.time > 0 && c.bytes > 0 ? (c.bytes / c.time).toFixed(2) : "";
const hue = (name) => { let h = 0; for (const x of name) h = (h * 31 + x.codePointAt(0)) % 360; return h; };
let chosen = -1;

document.title = DATA.file;
$("title").textContent = DATA.file;
const streams = [...new Set(commands.map((c) => c.stream))].sort((a, b) => a - b);
const threads = [...new Set(commands.map((c) => c.thread))].sort((a, b) => a - b);
const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
$("facts").textContent = `${commands.length} commands on ${many(streams.length, "queue")}, ${many(threads.length, "thread")}, ${us(total)} of work in ${us(end)}; ` +
  `${many(DATA.pipelines.length, "kernel")}, ${many(buffers.size, "buffer")}; ${DATA.meta.state}`;
const setTheme = (t) => { document.documentElement.dataset.theme = t; $("theme").textContent = t === "dark" ? "light" : "dark"; draw(); };
$("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

// --- canvases ---
let from = 0, to = end, laneOf = (c) => c.stream, lanes = streams;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
function canvas(id, height) {
  const c = $(id), ratio = devicePixelRatio || 1, width = c.clientWidth;
  c.style.height = height + "px"; c.width = width * ratio; c.height = height * ratio;
  const g = c.getContext("2d"); g.scale(ratio, ratio); g.clearRect(0, 0, width, height); g.font = "11px system-ui";
  return [g, width];
}
const left = 70;
let boxes = [];
function drawTimeline() {
  const rowHeight = 26, [g, width] = canvas("timeline", lanes.length * rowHeight + 22);
  const x = (t) => left + (t - from) / (to - from) * (width - left), place = new Map(lanes.map((s, i) => [s, i]));
  const dark = document.documentElement.dataset.theme === "dark";
  boxes = [];
  lanes.forEach((s, i) => { g.fillStyle = color("--soft"); g.fillText(($("lanes").value === "stream" ? "queue " : "") + s, 2, i * rowHeight + 17);
    g.strokeStyle = color("--line"); g.beginPath(); g.moveTo(0, (i + 1) * rowHeight); g.lineTo(width, (i + 1) * rowHeight); g.stroke(); });
  const last = new Float64Array(lanes.length).fill(-1);
  for (const c of commands) {
    if (c.start + c.time < from || c.start > to) continue;
    const row = place.get(laneOf(c)), a = Math.max(left, x(c.start)), b = Math.max(a + 1, Math.min(width, x(c.start + c.time)));
    if (b - a < 1.5 && a - last[row] < 1 && c.number !== chosen) continue;  // a pixel is a pixel
    last[row] = a;
    g.fillStyle = c.number === chosen ? color("--hit") : c.failed ? color("--bad") : `hsl(${hue(c.title)} 45% ${dark ? 48 : 62}%)`;
    g.fillRect(a, row * rowHeight + 3, b - a, rowHeight - 7);
    boxes.push([a, b, row, c]);
    if (b - a > 40) { g.save(); g.beginPath(); g.rect(a, row * rowHeight, b - a - 3, rowHeight); g.clip(); g.fillStyle = dark ? "#fff" : "#111"; g.fillText(c.title, a + 3, row * rowHeight + 17); g.restore(); }
  }
  g.fillStyle = color("--soft");
  for (let i = 0; i <= 5; ++i) { const t = from + (to - from) * i / 5; g.fillText(us(Math.round(t)), Math.min(x(t), width - 60), lanes.length * rowHeight + 16); }
}
function hit(event) {
  const r = $("timeline").getBoundingClientRect(), px = event.clientX - r.left, row = Math.floor((event.clientY - r.top) / 26);
  let best = null; for (const [a, b, at, c] of boxes) if (at === row && px >= a - 1 && px <= b + 1) best = c;
  return best;
}
let drag = null;
$("timeline").onmousedown = (e) => { drag = { x: e.clientX, from, to, moved: false }; };
addEventListener("mouseup", (e) => { if (drag && !drag.moved && e.target === $("timeline")) { const c = hit(e); if (c) choose(c.number, true); } drag = null; });
$("timeline").onmousemove = (e) => {
  if (drag) { const d = (e.clientX - drag.x) / ($("timeline").clientWidth - left) * (drag.to - drag.from);
    if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true; if (drag.moved) { from = drag.from - d; to = drag.to - d; draw(); } return; }
  const c = hit(e); tip(e, c && `<b>${escape(c.title)}</b> #${c.number}<br>${us(c.time)} ${escape(c.label)}`);
};
$("timeline").onmouseleave = () => tip();
$("timeline").onwheel = (e) => { e.preventDefault(); const r = $("timeline").getBoundingClientRect(), f = Math.exp(e.deltaY * 0.002);
  const at = from + (to - from) * Math.max(0, (e.clientX - r.left - left) / (r.width - left)); from = at - (at - from) * f; to = at + (to - at) * f; draw(); };
$("all").onclick = () => { from = 0; to = end; draw(); };
$("lanes").onchange = () => { const s = $("lanes").value === "stream"; laneOf = s ? (c) => c.stream : (c) => c.thread; lanes = s ? streams : threads; draw(); };
function tip(e, html) { const t = $("tip"); t.style.display = html ? "block" : "none"; if (!html) return; t.innerHTML = html; t.style.left = Math.min(e.clientX + 12, innerWidth - 260) + "px"; t.style.top = e.clientY + 14 + "px"; }

// --- memory ---
const changes = []; for (const b of buffers.values()) { changes.push([b.created, b.size]); if (b.retired >= 0) changes.push([b.retired, -b.size]); }
changes.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
const curve = []; let held = 0, peak = 0, peakTime = 0;
for (const [t, d] of changes) { held += d; curve.push([t, held]); if (held > peak) { peak = held; peakTime = t; } }
let memoryTime = -1;
$("memoryFacts").textContent = `peak ${size(peak)} at ${us(peakTime)}`;
function drawMemory() {
  const height = 90, [g, width] = canvas("memory", height), x = (t) => left + (t - from) / (to - from) * (width - left), y = (v) => height - 4 - v / (peak || 1) * (height - 12);
  g.fillStyle = color("--soft"); g.fillText(size(peak), 2, 14); g.fillText("0", 2, height - 4);
  g.beginPath(); let v = 0, started = false, lastPixel = -1, skipped = null;
  for (const [t, after] of curve) { const px = x(t);
    if (px < left) { v = after; continue; } if (!started) { g.moveTo(left, y(v)); started = true; } if (px > width) break;
    if (px - lastPixel < 0.5 && after <= v) skipped = px; else { if (skipped !== null) g.lineTo(skipped, y(v)); skipped = null; g.lineTo(px, y(v)); g.lineTo(px, y(after)); lastPixel = px; } v = after; }
  if (!started) g.moveTo(left, y(v)); g.lineTo(width, y(v)); g.strokeStyle = color("--accent"); g.stroke();
  g.lineTo(width, height); g.lineTo(left, height); g.closePath(); g.globalAlpha = .15; g.fillStyle = color("--accent"); g.fill(); g.globalAlpha = 1;
  if (memoryTime >= 0) { g.fillStyle = color("--hit"); g.fillRect(x(memoryTime), 0, 2, height); }
}
function owners(time) {
  memoryTime = time; const by = new Map(); let sum = 0;
  for (const b of buffers.values()) if (b.created <= time && (b.retired < 0 || b.retired > time)) { const key = b.op + "\n" + b.label + "\n" + b.stream;
    const o = by.get(key) || { op: b.op, label: b.label, stream: b.stream, bytes: 0, count: 0 }; o.bytes += b.size; ++o.count; by.set(key, o); sum += b.size; }
  const rows = [...by.values()].sort((a, b) => b.bytes - a.bytes);
  $("owners").innerHTML = `<p>${size(sum)} at ${us(time)}, by owner:</p><table class="owners"><tr><th>op</th><th>label</th><th>queue</th><th class="number">buffers</th><th class="number">bytes</th></tr>` +
    rows.slice(0, 40).map((o) => `<tr><td>${escape(o.op)}</td><td>${escape(o.label)}</td><td>${o.stream < 0 ? "host" : o.stream}</td><td class="number">${o.count}</td><td class="number">${size(o.bytes)}</td></tr>`).join("") +
    "</table>" + (rows.length > 40 ? `<p class="soft">and ${rows.length - 40} more</p>` : "");
  drawMemory();
}
$("memory").onclick = (e) => { const r = $("memory").getBoundingClientRect(); owners(Math.round(from + (to - from) * (e.clientX - r.left - left) / (r.width - left))); };
$("peak").onclick = () => owners(peakTime);

// --- the table ---
const columns = [["#", "number", 1, (c) => c.count ? "×" + c.count : c.number], ["what", "title", 0, (c) => c.title], ["label", "label", 0, (c) => c.label],
  ["kind", "kind", 0, (c) => c.kind], ["queue", "stream", 1, (c) => c.stream], ["at", "start", 1, (c) => us(c.start)], ["time", "time", 1, (c) => us(c.time)],
  ["share", "time", 1, (c) => (c.time / total * 100).toFixed(2) + " %"], ["GB/s", "rate", 1, (c) => rate(c)]];
let sortBy = 6, down = true, shown = [];
const widths = "<colgroup>" + [7, 23, 16, 8, 7, 10, 10, 9, 10].map((w) => `<col style="width:${w}%">`).join("") + "</colgroup>";
function head() { $("head").style.tableLayout = "fixed"; $("head").innerHTML = widths + "<tr>" + columns.map(([name, , number], i) =>
  `<th data-i="${i}" class="${number ? "number" : ""}">${name}${i === sortBy ? (down ? " ▾" : " ▴") : ""}</th>`).join("") + "</tr>"; }
$("head").onclick = (e) => { const th = e.target.closest("th"); if (!th) return; const i = +th.dataset.i; if (i === sortBy) down = !down; else { sortBy = i; down = !!columns[i][2]; } refresh(); };
function refresh() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean), by = $("group").value;
  let rows = commands.filter((c) => { const t = (c.title + " " + c.op + " " + c.label + " " + c.kind).toLowerCase(); return words.every((w) => t.includes(w)); });
  const found = rows.length, sum = rows.reduce((s, c) => s + c.time, 0);
  if (by) { const m = new Map(); for (const c of rows) { const o = m.get(c[by]); if (o) { o.time += c.time; o.bytes += c.bytes; ++o.count; } else m.set(c[by], { ...c, count: 1 }); } rows = [...m.values()]; }
  const key = columns[sortBy][1], value = key === "rate" ? (c) => +rate(c) || 0 : key === "number" && by ? (c) => c.count : (c) => c[key];
  rows.sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : a.number - b.number) * (down ? -1 : 1); });
  shown = rows; $("count").textContent = `${found} commands, ${us(sum)}`;
  head(); $("space").style.height = rows.length * 24 + "px"; $("rows").scrollTop = 0; drawRows();
}
function drawRows() {
  const first = Math.floor($("rows").scrollTop / 24), part = shown.slice(first, first + 24);
  $("body").style.top = first * 24 + "px"; $("head").style.width = $("rows").clientWidth + "px";
  $("body").innerHTML = widths + "<tbody>" + part.map((c) => `<tr data-n="${c.number}" class="${c.number === chosen ? "chosen" : ""}">` +
    columns.map(([, , number, text]) => `<td class="${number ? "number" : ""}" title="${escape(text(c))}">${escape(text(c))}</td>`).join("") + "</tr>").join("") + "</tbody>";
}
$("rows").onscroll = drawRows; $("search").oninput = refresh; $("group").onchange = refresh;
$("body").onclick = (e) => { const row = e.target.closest("tr"); if (row) choose(+row.dataset.n, false); };

// --- one command ---
// Who wrote the bytes last before, and who reads them next: across lists and queues.
const writers = new Map(); for (const c of commands) for (let i = 0; i < c.bindings.length; i += 4) if (c.bindings[i + 3]) { const w = writers.get(c.bindings[i]); if (w) w.push(c.number); else writers.set(c.bindings[i], [c.number]); }
const readers = new Map(); for (const c of commands) for (let i = 0; i < c.bindings.length; i += 4) if (!c.bindings[i + 3]) { const w = readers.get(c.bindings[i]); if (w) w.push(c.number); else readers.set(c.bindings[i], [c.number]); }
)page"
R"page(const link = (n) => `<a data-n="${n}">#${n} ${escape(commands[n].title)}</a>`;
function choose(n, scroll) {
  chosen = n; const c = commands[n], before = new Map(), after = new Set();
  for (const e of c.edges) before.set(e < 0 ? -e - 1 : e, e < 0 ? "memory" : "data");
  for (let i = 0; i < c.bindings.length; i += 4) { const id = c.bindings[i];
    if (!c.bindings[i + 3]) { const w = (writers.get(id) || []).filter((k) => commands[k].start < c.start && k !== n).pop(); if (w !== undefined && !before.has(w)) before.set(w, "data"); }
    else { const next = (writers.get(id) || []).find((k) => commands[k].start > c.start) ?? Infinity; const limit = next === Infinity ? Infinity : commands[next].start;
      for (const k of readers.get(id) || []) if (commands[k].start > c.start && commands[k].start <= limit) after.add(k); } }
  let html = `<h2>#${n} ${escape(c.title)}${c.failed ? ' <span class="bad">failed</span>' : ""}</h2><dl><dt>op</dt><dd>${escape(c.op)} (${c.kind})</dd>` + (c.label ? `<dt>label</dt><dd>${escape(c.label)}</dd>` : "") +
    `<dt>time</dt><dd>${us(c.time)} at ${us(c.start)}, ${(c.time / total * 100).toFixed(2)} %${rate(c) ? ", " + rate(c) + " GB/s" : ""}</dd><dt>where</dt><dd>queue ${c.stream}, list ${c.list}, thread ${c.thread}</dd>` + (c.grid ? `<dt>grid</dt><dd>${escape(c.grid)}</dd>` : "") + "</dl>";
  const names = (list) => list.length ? list.slice(0, 30).join("<br>") + (list.length > 30 ? `<br>and ${list.length - 30} more` : "") : '<span class="soft">nothing</span>';
  html += `<div class="flow"><div><b>waits for</b><br>${names([...before].map(([k, why]) => link(k) + (why === "memory" ? ' <span class="soft">(memory)</span>' : "")))}</div><div><b>is read by</b><br>${names([...after].map(link))}</div></div>`;
  html += "<table><tr><th>buffer</th><th>bytes</th><th>made by</th></tr>"; for (let i = 0; i < c.bindings.length; i += 4) { const b = buffers.get(c.bindings[i]) || { op: "?" };
    html += `<tr><td>${c.bindings[i + 3] ? "writes" : "reads"} #${c.bindings[i]}</td><td>${c.bindings[i + 1]} – ${c.bindings[i + 2]}</td><td>${escape(b.op)}</td></tr>`; } html += "</table>";
  if (c.pipeline >= 0) { const p = DATA.pipelines[c.pipeline]; html += `<h2 style="margin-top:.8em">Source</h2><p class="soft">${escape(p.entry)}, ${p.math} math, key ${escape(p.key)}</p><pre id="source">${escape(p.source)}</pre>` +
    (p.lowering ? `<h2>Lowering</h2><p class="soft">${escape(p.lowering)}</p>` : "") + (p.assembly ? `<details><summary>assembly</summary><pre id="assembly">${escape(p.assembly)}</pre></details>` : ""); }
  $("details").innerHTML = html;
  if (c.start + c.time < from || c.start > to) { const w = to - from; from = c.start - w / 2; to = from + w; }
  const at = shown.indexOf(c); if (scroll && at >= 0) $("rows").scrollTop = at * 24 - 200;
  draw(); drawRows();
}
$("details").onclick = (e) => { const a = e.target.closest("a[data-n]"); if (a) choose(+a.dataset.n, true); };
function draw() { drawTimeline(); drawMemory(); }
addEventListener("resize", draw);
refresh();
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.ready = Math.round(performance.now());
</script>
</body>
</html>
)page";
// clang-format on

}  // namespace holdfast::tool
