// Colours by the theme of the page. The hues are told apart by colour-blind people too (after Okabe and Ito); what they
// mean is always said in words as well.

const NAMES = {
  page: "--view-page", surface: "--view-surface", stripe: "--view-stripe", grid: "--view-grid", zero: "--view-zero",
  edge: "--view-edge", ink: "--view-ink", muted: "--view-muted", accent: "--view-accent", tip: "--view-tip", tipInk: "--view-tip-ink",
  unusable: "--view-unusable",
};
const HUES = 7;
const TYPES = [
  /^(EEG|MEG|MEGMAG|MEGGRADAXIAL|MEGGRADPLANAR|SEEG|ECOG|DBS|EMG)$/i, // 0: what the recording is about
  /^(EOG|VEOG|HEOG|EYEGAZE|PUPIL)$/i,
  /^(ECG)$/i,
  /^(TRIG|SYSCLOCK|CTRL|STIM)$/i,
  /^(REF|MEGREF.*|FITERR)$/i,
  /^(MISC|OTHER|AUX|AUDIO|TEMP|GSR|EDA|RESP|PPG)$/i,
];

/** The colours of the page as it looks now. */
export function readColours(element) {
  const style = getComputedStyle(element);
  const colours = Object.fromEntries(Object.entries(NAMES).map(([name, variable]) => [name, style.getPropertyValue(variable).trim()]));
  colours.types = Array.from({ length: TYPES.length }, (_, index) => style.getPropertyValue(`--view-type-${index}`).trim());
  colours.events = Array.from({ length: HUES }, (_, index) => style.getPropertyValue(`--view-event-${index}`).trim());
  colours.font = style.fontFamily;
  return colours;
}

/** The colour of a channel's line: by its type, and grey for what is not for inference. */
export function colourOfType(colours, channel) {
  const found = TYPES.findIndex((pattern) => pattern.test(channel.type));
  if (!channel.isUsable && found !== 3) return colours.unusable;
  return colours.types[found < 0 ? TYPES.length - 1 : found];
}

/** The colour of an event label, by its place in the list of labels. */
export function colourOfEvent(colours, number) {
  return colours.events[number % HUES];
}
