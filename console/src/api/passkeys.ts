/** Creates passkeys in the browser and signs with them. */
import { passkeyTexts } from "../texts/security";
import { ApiError } from "./errors";

type Options = Record<string, unknown>;

export const canUsePasskeys = (): boolean => "PublicKeyCredential" in window && "parseCreationOptionsFromJSON" in PublicKeyCredential;

/** Asks the browser to create a passkey. Throws ApiError with a message for the user. */
export function createPasskey(options: Options): Promise<Options> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as never);
  return credential(() => navigator.credentials.create({ publicKey }));
}

/** Asks the browser to sign with a passkey. Throws ApiError with a message for the user. */
export function signWithPasskey(options: Options): Promise<Options> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as never);
  return credential(() => navigator.credentials.get({ publicKey }));
}

async function credential(ask: () => Promise<Credential | null>): Promise<Options> {
  try {
    const answer = (await ask()) as PublicKeyCredential;
    return answer.toJSON() as unknown as Options;
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    throw new ApiError(0, passkeyTexts.faults[name] ?? passkeyTexts.fault);
  }
}
