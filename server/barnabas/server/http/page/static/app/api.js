// The JSON API of the broker that served this page.

/** An answer that is an error, or none; its message is a sentence for people. */
export class ApiError extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

/**
 * What `api/v1` answers at a path of these parts.
 *
 * Query values that are null or undefined are left out; lists are given once for each item.
 */
export async function ask(parts, query = {}, signal = undefined) {
  let response;
  try {
    response = await fetch(address(parts, query), { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The broker does not answer: it may be stopped, or be starting.", 0);
  }
  let content;
  try {
    content = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(`The broker answers ${response.status}, and not in JSON.`, response.status);
  }
  if (!response.ok) throw new ApiError(sentence(content, response.status), response.status);
  return content;
}

/** The address of an answer of the API, to be looked at without the page. */
export function address(parts, query = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) given.append(name, each);
    }
  }
  const path = ["api", "v1", ...parts.map(encodeURIComponent)].join("/");
  const text = given.toString();
  return text ? `${path}?${text}` : path;
}

function sentence(content, status) {
  const said = typeof content?.error === "string" ? content.error : `The broker answers ${status}`;
  // A sentence of the broker may begin with the name of a topic, which stays as it is.
  const first = said.replace(/^(?:the|there|a|an|no|it|this|too)\b/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
