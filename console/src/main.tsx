import "@fontsource-variable/inter/wght.css";
import "../../src/gatehouse/foundation/http/pages/static/tokens.css";
import "./styles/base.css";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "./api/queries";
import { router } from "./router";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root element");

// Reload a page that the browser restores from its back/forward cache: its session may have ended since.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

createRoot(root).render(
  <StrictMode>
    {/* The content security policy allows no style elements. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
