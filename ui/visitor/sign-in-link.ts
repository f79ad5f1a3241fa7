// Takes the one-time token out of the address. Imported before anything else, so that the token is gone from the
// address bar and the history before a screenshot, a reload or another script can see it.

const MARK = "#sign-in=";

/** The token that stands in the address, which is cleaned at once; `null` where there is none. */
export function takeToken(): string | null {
  if (!location.hash.startsWith(MARK)) return null;
  const token = location.hash.slice(MARK.length);
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}

/** What stood in the address when the page was opened. */
export const firstToken = takeToken();
