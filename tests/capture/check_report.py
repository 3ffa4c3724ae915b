#!/usr/bin/env python3
"""Captures 20,000 dispatches, replays them in another process with another number of threads, and opens the report in headless
Chromium: clicks through the timeline's neighbours (sort, search, peak of memory, a dispatch's source) and looks at what came.

  check_report.py HOLDFAST CHROMIUM [SCREENSHOT.png]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNEL = """kernel void axpy(const device float* x [[buffer(0)]], constant float& a [[buffer(1)]],
                 device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i];
}
"""

CLICKS = """
<script>
const seen = { ready: +document.documentElement.dataset.ready, commands: commands.length };
const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
const first = () => $("body").querySelector("tbody tr");
seen.longestFirst = +shown[0].time >= +shown[shown.length - 1].time;
click($("head").querySelectorAll("th")[0]); click($("head").querySelectorAll("th")[0]);
seen.firstByNumber = first().dataset.n;
$("search").value = "no such thing"; $("search").oninput(); seen.foundNone = shown.length;
$("search").value = "axpy"; $("search").oninput(); seen.found = shown.length;
click(first().querySelector("td"));
seen.details = $("details").querySelector("h2").textContent; seen.source = $("source").textContent; seen.lowering = $("details").textContent; seen.assembly = $("assembly").textContent.length;
click($("peak")); seen.owners = $("owners").querySelectorAll("tr").length;
click($("theme")); seen.theme = document.documentElement.dataset.theme;
const box = boxes[0], at = $("timeline").getBoundingClientRect(), where = { clientX: at.left + box[0] + 1, clientY: at.top + box[2] * 26 + 10, bubbles: true };
$("timeline").dispatchEvent(new MouseEvent("mousedown", where)); $("timeline").dispatchEvent(new MouseEvent("mouseup", where));
seen.chosen = chosen;
const note = document.createElement("script"); note.type = "application/json"; note.id = "seen"; note.textContent = JSON.stringify(seen); document.body.append(note);
</script>
"""


def run(*words, **variables):
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, timeout=240)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    tool, chromium = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        file, page = f"{folder}/axpy.hfcap", pathlib.Path(folder, "report.html")
        kernels = pathlib.Path(folder, "axpy.metal")
        kernels.write_text(KERNEL)
        run(tool, "kernel", "run", str(kernels), "--kernel", "axpy", "--in", "x=f32[64]:range", "--in", "a=f32:2", "--out", "y=f32[64]",
            "--grid", "64", "--threadgroup", "32", "--repeat", "20000", HOLDFAST_CAPTURE=file + ":0,20000", HOLDFAST_CAPTURE_DIGESTS="1")
        replayed = run(tool, "trace", "replay", file, HOLDFAST_THREADS="1", HOLDFAST_DISK_CACHE="0")
        assert "bit for bit the same" in replayed, replayed
        assert "axpy" in run(tool, "trace", "show", file, "5000")
        run(tool, "trace", "export", file, "--perfetto", f"{folder}/t.json")
        assert len(json.loads(pathlib.Path(folder, "t.json").read_text())["traceEvents"]) > 20000
        assert "the same commands and the same values" in run(tool, "trace", "diff", file, file)
        run(tool, "trace", "report", file, "-o", str(page))
        page.write_text(page.read_text().replace("</body>", CLICKS + "</body>"))
        browser = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1400"]
        dom = run(*browser, "--dump-dom", page.as_uri())
        if len(sys.argv) > 3:
            run(*browser, f"--screenshot={sys.argv[3]}", page.as_uri())
    seen = json.loads(re.search(r'<script type="application/json" id="seen">(.*?)</script>', dom, re.S).group(1))
    print({key: value for key, value in seen.items() if key not in ("source", "lowering")})
    assert seen["commands"] >= 20000 and seen["longestFirst"], seen
    assert seen["firstByNumber"] == "0" and seen["foundNone"] == 0 and seen["found"] >= 19000, seen
    assert "axpy" in seen["details"] and "kernel void axpy" in seen["source"], seen
    assert "widened for" in seen["lowering"] and seen["assembly"] > 500, seen
    assert seen["owners"] >= 2 and seen["theme"] in ("light", "dark") and seen["chosen"] >= 0, seen


if __name__ == "__main__":
    main()
