// The page works without this script. The script adds copy buttons, a search, and a language choice for the whole page.
const origin = document.getElementById("prepare");
if (location.protocol.startsWith("http")) {
  origin.textContent = origin.textContent.replace("http://127.0.0.1:8080", location.origin);
}

for (const sample of document.querySelectorAll(".sample")) {
  const code = sample.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent + "\n");
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  sample.append(button);
}

// Choosing a language in one sample selects it in all of them.
document.addEventListener("change", ({ target }) => {
  if (target.name?.startsWith("language-")) {
    for (const choice of document.querySelectorAll(`.tabs > input[value="${target.value}"]`)) choice.checked = true;
  }
});

const search = document.getElementById("search");
const count = document.getElementById("found");
const links = [...document.querySelectorAll("nav a")];
const operations = [...document.querySelectorAll("article[data-method]")].map((article) => ({
  article,
  link: links.find((link) => link.hash === `#${article.id}`).parentElement,
  text: `${article.id} ${article.dataset.path} ${article.textContent}`.toLowerCase(),
}));

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { article, link, text } of operations) {
    const shown = words.every((word) => text.includes(word));
    article.hidden = link.hidden = !shown;
    found += shown ? 1 : 0;
  }
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = words.length > 0 && !section.querySelector("article:not([hidden])");
    links.find((link) => link.hash === `#${section.querySelector("h2").id}`).parentElement.hidden = section.hidden;
  }
  count.textContent = words.length > 0 ? `${found} of ${operations.length} operations` : "";
}

document.getElementById("finder").hidden = false;
search.value = new URLSearchParams(location.search).get("q") ?? "";
search.addEventListener("input", find);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    find();
  }
});
find();
