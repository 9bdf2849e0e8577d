/** What the first steps need to know. */
import { useProviders } from "../providers/api";

/** The providers that can be called. */
export function useReadyProviders() {
  const providers = useProviders();
  return { ...providers, data: providers.data?.filter((provider) => provider.enabled && provider.credentials_configured) };
}
