"use strict";

// A form with `data-passkey` asks the browser for a passkey before it is sent. Without this script it stays hidden.
for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    const fault = document.getElementById("passkey-fault");
    button.disabled = true;
    fault.hidden = true;
    try {
      form.elements.credential.value = JSON.stringify((await credentialOf(form)).toJSON());
    } catch (error) {
      fault.textContent = faultText(error);
      fault.hidden = false;
      button.disabled = false;
      button.focus();
      return;
    }
    form.submit();
  });
}

function credentialOf(form) {
  const options = JSON.parse(form.dataset.options);
  if (form.dataset.passkey === "create") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
}

function faultText(error) {
  if (error.name === "InvalidStateError") return "This device has a passkey for your account already.";
  if (error.name === "NotAllowedError") return "The passkey was not used: it was cancelled, or took too long.";
  return "This browser could not use a passkey here.";
}
