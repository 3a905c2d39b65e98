// Everything works without this file; it saves clicks. Text from the server is only ever set as text.

const status = document.getElementById("status");

document.querySelector("form[data-send]")?.requestSubmit();

document.addEventListener("submit", (event) => {
  const words = event.target.dataset.busy;
  if (!words) return;
  status.textContent = `${words}…`;
  for (const button of event.target.querySelectorAll("button")) setTimeout(() => (button.disabled = true));
});
addEventListener("pageshow", (event) => event.persisted && location.reload());

for (const field of document.querySelectorAll("input[data-filter]")) {
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    let shown = 0;
    for (const row of document.querySelectorAll(field.dataset.filter)) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    status.textContent = wanted ? `${shown} shown` : "";
  });
}

for (const box of document.querySelectorAll("input[data-live]")) {
  setInterval(async () => {
    if (!box.checked || document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector(box.dataset.live);
      if (!answer.ok || !fresh) throw new Error();
      const list = document.querySelector(box.dataset.live);
      if (list.innerHTML === fresh.innerHTML) return;
      const at = list.contains(document.activeElement) && document.activeElement.getAttribute("href");
      list.replaceWith(document.adoptNode(fresh));
      if (at) [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === at)?.focus();
      status.textContent = "The list has changed.";
    } catch {
      box.checked = false;
      status.textContent = "The list is no longer kept current: the workbench does not answer. Reload the page.";
    }
  }, 3000);
}

for (const field of document.querySelectorAll("[data-pattern]")) {
  const wanted = new RegExp(field.dataset.pattern, "u");
  const check = () => {
    const wrong = field.value.split("\n").find((line) => line.trim() && !wanted.test(line.trim()));
    field.setCustomValidity(wrong === undefined ? "" : `“${wrong.trim()}” does not match ${field.dataset.pattern}`);
  };
  field.addEventListener("input", check);
  check();
}

const editor = document.querySelector("textarea.editor");
if (editor) {
  const lines = () => editor.value.slice(0, editor.selectionStart).split("\n").length;
  const place = document.getElementById("place");
  const show = () => (place.textContent = `Line ${lines()}`);
  for (const kind of ["keyup", "click", "input"]) editor.addEventListener(kind, show);

  const go = (line) => {
    const before = editor.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = editor.value.indexOf("\n", before);
    editor.focus();
    editor.setSelectionRange(before, end < 0 ? editor.value.length : end);
    editor.scrollTop = (line - 5) * parseFloat(getComputedStyle(editor).lineHeight);
    show();
  };
  const asked = /^#L([0-9]+)$/.exec(location.hash);
  if (asked) go(Number(asked[1]));

  if (editor.dataset.lint) {
    const list = document.getElementById("lint");
    let turn = 0;
    let timer;
    const item = (one) => {
      const row = document.createElement("li");
      if (one.line) {
        const jump = document.createElement("button");
        jump.type = "button";
        jump.className = "quiet";
        jump.textContent = `Line ${one.line}`;
        jump.addEventListener("click", () => go(one.line));
        row.append(jump, " ");
      }
      row.append(`${one.where}: ${one.message}. ${one.remedy}`);
      return row;
    };
    let busy = false;
    const lint = async () => {
      if (busy) return (timer = setTimeout(lint, 400)); // one at a time: rules take seconds
      const mine = ++turn;
      busy = true;
      const body = new URLSearchParams({
        form_key: document.body.dataset.formKey,
        file: editor.form.elements.file.value,
        text: editor.value,
      });
      let found;
      try {
        const answer = await fetch(editor.dataset.lint, { method: "POST", body });
        if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
        found = (await answer.json()).problems;
      } catch (error) {
        if (mine === turn) list.textContent = `Not checked: ${error.message}`;
        return;
      } finally {
        busy = false;
      }
      if (mine !== turn) return;
      list.textContent = found.length ? `${found.length} problem${found.length === 1 ? "" : "s"}` : "No problems";
      if (found.length) {
        const rows = document.createElement("ul");
        rows.append(...found.map(item));
        list.append(rows);
      }
    };
    editor.addEventListener("input", () => {
      clearTimeout(timer);
      turn++;
      list.textContent = "Checking…";
      timer = setTimeout(lint, 400);
    });
    const original = editor.value;
    let sent = false;
    editor.form.addEventListener("submit", () => (sent = true));
    addEventListener("beforeunload", (event) => {
      if (!sent && editor.value !== original) event.preventDefault();
    });
  }
}
