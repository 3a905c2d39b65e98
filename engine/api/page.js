for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = form.querySelector("output");
    const headers = {};
    const token = document.getElementById("token").value.trim();
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const body = form.querySelector("textarea");
    if (body) headers["Content-Type"] = "application/json";
    output.textContent = "\u2026";
    try {
      const path = form.dataset.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(form.elements[name].value));
      const answer = await fetch(path, {
        method: form.dataset.method,
        headers,
        body: body ? body.value : undefined,
      });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (_) { /* not JSON: as it is */ }
      output.textContent = `${answer.status} ${answer.statusText}\n${shown}`;
    } catch (error) {
      output.textContent = `no answer: ${error.message}`;
    }
  });
}
