// Instants in the reader's own zone, which the foot of the page names once.

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const FORMS = {
  minutes: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hour12: false },
  seconds: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false },
};

/**
 * The instant as people in `zone` write it.
 * @param {string} instant ISO 8601
 * @param {string} form one of FORMS
 * @param {string} zone
 */
export function localText(instant, form, zone) {
  return new Intl.DateTimeFormat("en-GB", { ...(FORMS[form] ?? FORMS.minutes), timeZone: zone }).format(new Date(instant));
}

/** @param {ParentNode} root */
export function localTimes(root) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  /** @type {NodeListOf<HTMLTimeElement>} */
  const times = root.querySelectorAll("time[data-shown]");
  for (const time of times) time.textContent = localText(time.dateTime, time.dataset.shown ?? "", zone);
  for (const name of root.querySelectorAll("[data-zone]")) name.textContent = zone;
}
