// Requests to the JSON API. A server that requires a token gets it as a bearer token.

const KEY = "moorage token";

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await send(`/ui/api/${path}${query ? `?${query}` : ""}`);
  return read(response);
}

async function read(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || answer.message || `HTTP ${response.status}`);
  return answer;
}

async function send(url) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const response = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    if (response.status !== 401) return response;
    const given = window.prompt("This server requires a token:");
    if (!given) return response;
    sessionStorage.setItem(KEY, given.trim());
  }
}

export function podPath(key) {
  return `pods/${key.split("/").map(encodeURIComponent).join("/")}`;
}
