// Small helpers to build the page without a framework.

/** Make an element: el("p", {class: "x", onclick: f}, "text", child, …). */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Write a number with thousands apart: 1,234. */
export const count = (number) => Math.round(number).toLocaleString("en");

/** Write a share: 7.4 %, 0.03 %. */
export function percent(share) {
  const number = 100 * share;
  return `${number >= 10 ? number.toFixed(0) : number >= 0.1 ? number.toFixed(1) : number.toPrecision(1)} %`;
}

/** Write a number of bytes: 719 kB. */
export function bytes(number) {
  for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (number >= unit) return `${(number / unit).toPrecision(3)} ${name}`;
  return `${Math.round(number)} B`;
}

/** Write a large number briefly: 1.29 M. */
export function brief(number) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (number >= unit) return `${(number / unit).toPrecision(3)} ${name}`;
  return String(Math.round(number));
}

/** Write milliseconds: 0.4 ms, 12 ms. */
export const milliseconds = (number) => `${number < 10 ? number.toFixed(1) : Math.round(number)} ms`;

/** A number with its name below. */
export const fact = (value, name, more = {}) =>
  el("div", { class: "fact", ...more }, el("b", {}, value), el("span", {}, name));
