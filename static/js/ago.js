/* Keeps <time data-ago> fresh. The rules are those of the filter `ago` in builder/templatetags/formats.py. */

const UNITS = [[31_536_000, "y"], [2_592_000, "mo"], [604_800, "w"], [86_400, "d"], [3_600, "h"], [60, "m"], [1, "s"]];
const PAIRS = [[86_400, "d", 3_600, "h"], [3_600, "h", 60, "m"], [60, "m", 1, "s"]];

export function relative(seconds, long = false) {
  if (seconds <= -1) return `in ${twoUnits(Math.floor(-seconds))}`;
  if (seconds < 1) return "now";
  return `${long ? twoUnits(Math.floor(seconds)) : oneUnit(Math.floor(seconds))} ago`;
}

function twoUnits(seconds) {
  for (const [size, name, smaller, smallerName] of PAIRS) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / smaller);
    return `${Math.floor(seconds / size)} ${name}${rest ? ` ${rest} ${smallerName}` : ""}`;
  }
  return `${seconds} s`;
}

function oneUnit(seconds) {
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${name}`;
}

function refresh() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = relative((Date.now() - Date.parse(time.dateTime)) / 1000, time.dataset.ago === "long");
    if (time.textContent !== text) time.textContent = text;
  }
}

setInterval(refresh, 5_000);
document.addEventListener("visibilitychange", refresh);
