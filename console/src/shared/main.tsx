import "@fontsource-variable/inter/wght.css";
import "../../../src/gatehouse/foundation/http/pages/static/tokens.css";
import "../styles/base.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SharedPage } from "./SharedPage";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root element");

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false } } })}>
      <SharedPage token={location.pathname.split("/").at(-1) ?? ""} />
    </QueryClientProvider>
  </StrictMode>,
);
