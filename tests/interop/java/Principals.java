import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Says what Java and Apache Kafka make of certificates (a line in base64) and rules (rules, subject). */
public class Principals {
    public static void main(String[] arguments) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            if (parts.length == 1) {
                byte[] der = Base64.getDecoder().decode(line);
                X509Certificate found = (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(der));
                out.println(found.getSubjectX500Principal().getName());
            } else {
                try {
                    out.println("=" + SslPrincipalMapper.fromRules(parts[0]).getName(parts[1]));
                } catch (Exception e) {
                    out.println("-");
                }
            }
        }
    }
}
