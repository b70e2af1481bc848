// Numbers and sizes as text, and elements.

/** Returns an element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Returns a number with few digits. */
export function short(value) {
  if (value === undefined || value === null) return '';
  if (!Number.isFinite(value)) return String(value).toLowerCase();
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return String(Number(value.toPrecision(6)));
}

/** Returns a number of bytes in binary units. */
export function size(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit + 1 < units.length; unit += 1) value /= 1024;
  return unit === 0 ? `${bytes} byte${bytes === 1 ? '' : 's'}` : `${value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Returns the label for a value of an enumeration of facts. */
export function plain(value) {
  if (Array.isArray(value)) return value.length ? value.map(plain).join(', ') : '-';
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toFixed(2);
  return String(value);
}

/** Fills a list of terms and their descriptions. */
export function define(list, entries) {
  list.replaceChildren(...entries.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
}

/** Sets the size of a canvas to that on the screen and returns its context, in CSS pixels. */
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

/** The colour of a variable of the style sheet. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Fills a rectangle with stripes: what it would show cannot be read. */
export function hatch(context, left, top, width, height) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.fillStyle = colour('card');
  context.fillRect(left, top, width, height);
  context.strokeStyle = colour('bad');
  context.lineWidth = 1.5;
  context.beginPath();
  for (let x = left - height; x < left + width; x += 7) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

/** Calls `action` at most once for each frame. */
export function eachFrame(action) {
  let planned = false;
  return () => {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => { planned = false; action(); });
  };
}
