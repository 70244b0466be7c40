// Requests to the JSON API. A server that requires a token gets it as a bearer token.

const KEY = "moorage token";

// Parameters of every request: the time of a recording.
export const common = {};

export async function get(path, parameters = {}) {
  const query = new URLSearchParams([...new URLSearchParams(parameters), ...Object.entries(common)]).toString();
  const response = await send(`/ui/api/${path}${query ? `?${query}` : ""}`);
  return read(response);
}

async function read(response) {
  if (response.ok) return response.json();
  const answer = await response.json().catch(() => ({})); // A proxy or a crash answers with text.
  throw new Error(answer.error || answer.message || `HTTP ${response.status}`);
}

async function send(url) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const response = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} })
      .catch(() => { throw new Error("the server does not answer"); });
    if (response.status !== 401) return response;
    const given = window.prompt("This server requires a token:");
    if (!given) return response;
    sessionStorage.setItem(KEY, given.trim());
  }
}

// Calls back with the version of each new snapshot; goes on when the connection was lost.
export async function follow(onVersion) {
  for (;;) {
    try {
      const response = await send("/ui/api/events");
      if (!response.ok) return;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (text + value).split("\n");
        text = lines.pop();
        for (const line of lines) {
          if (line.startsWith("data: ")) onVersion(JSON.parse(line.slice(6)).version);
        }
      }
    } catch (failure) {
      console.info(`the stream of events ended: ${failure.message}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
}

export function podPath(key) {
  return `pods/${key.split("/").map(encodeURIComponent).join("/")}`;
}
